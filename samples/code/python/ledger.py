"""A ledger of whole cents in double entry: every transaction sums to zero, or it is refused."""

import csv
from collections import Counter
from decimal import Decimal


class Unbalanced(ValueError):
    """A transaction whose postings do not sum to zero."""


class Ledger:
    def __init__(self):
        self.transactions = []

    def post(self, date, text, **amounts):
        """Books one transaction; amounts are strings such as "12.50", negative where money leaves."""
        postings = {account: cents(amount) for account, amount in sorted(amounts.items())}
        surplus = sum(postings.values())
        if surplus:
            raise Unbalanced(f"{date} {text!r}: the postings sum to {surplus} cents and should sum to 0")
        self.transactions.append((date, text, postings))

    def balances(self, until=None):
        """account -> cents, over all transactions dated up to and including `until`."""
        totals = Counter()
        for date, _, postings in self.transactions:
            if until is None or date <= until:
                totals.update(postings)
        return dict(totals)

    def write(self, file):
        """Writes one row a posting."""
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["date", "text", "account", "cents"])
        for date, text, postings in self.transactions:
            for account, amount in postings.items():
                rows.writerow([date, text, account, amount])


def cents(amount):
    """Whole cents of a decimal string; a fraction of a cent is an error and is never rounded away."""
    value = Decimal(amount) * 100
    if value != value.to_integral_value():
        raise ValueError(f"{amount} has a fraction of a cent")
    return int(value)
