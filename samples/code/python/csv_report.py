"""Sums a column of a CSV file by the values of another and prints a table with bars."""

import argparse
import csv
import sys
from collections import defaultdict


def totals(rows, group, value):
    """group member -> sum of `value`; a cell that is not a number is an error naming its line."""
    sums = defaultdict(float)
    for line, row in enumerate(rows, start=2):
        try:
            sums[row[group]] += float(row[value].replace(",", ""))
        except ValueError:
            raise SystemExit(f"line {line}: {value} is {row[value]!r}, which is not a number") from None
    return dict(sums)


def table(sums, width=40):
    """Lines of name, sum and a bar, the largest first."""
    widest = max(map(len, sums), default=0)
    largest = max((abs(total) for total in sums.values()), default=0) or 1
    for name, total in sorted(sums.items(), key=lambda item: (-item[1], item[0])):
        bar = "#" * round(abs(total) / largest * width)
        yield f"{name:<{widest}}  {total:>12,.2f}  {bar}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=argparse.FileType("r", encoding="utf-8"))
    parser.add_argument("group", help="the column whose values name the rows of the table")
    parser.add_argument("value", help="the column that is summed")
    options = parser.parse_args(arguments)
    reader = csv.DictReader(options.file)
    for name in (options.group, options.value):
        if name not in (reader.fieldnames or []):
            parser.error(f"no column {name!r}; there are {', '.join(reader.fieldnames or [])}")
    for line in table(totals(reader, options.group, options.value)):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
