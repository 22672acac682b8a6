"""Whether a text of ideographs, kana or hangul is ordinary, where several encodings would give one.

In: a text and the codec that it came out of. Out: the share that is ordinary, and how likely such a text is. The
standards put what is common into their first level, by reading or by strokes, and what is rare behind it: bytes of
another encoding fall on both alike. Besides, some 300 ideographs and 50 syllables make up nearly half of any running
text.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log

HAN = frozenset(
    "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天"
    "如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从開这為來個們說國時於會後對裡過發無"
    "軍麼經當與學進種將還見沒從業現動長問間關實點機電业现动长问间关实点机电全本高民女力手理部外新明等性体體水化平工政产產"
    "把被给給向因由己很最四五六七八九百千万萬月文名市入回西东東南北正员員合使應应如或及並并但想头頭门門表场場内內加公安"
    "曰道兒儿笑姐玉頭太"
)
HANGUL = frozenset("이다는의에을고하가지한기로사자은를리도인시어나서아대그있만여보해수라으정일전들주부조과상와게제성비")
LETTERS_MAX = 1000
FEW = 20
"""Ideographs below which the commonest ones say nothing: a title may hold none."""
COMMON_MIN = 0.12
HANGUL_MIN = 0.2
KANA_MIN = 0.1
_KINDS = re.compile(
    "(?P<kana>[\u3041-\u30ff])|(?P<hangul>[\uac00-\ud7a3])|(?P<han>[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
    "|(?P<marks>[\u3000-\u303f\uff01-\uff5e\u2010-\u2027\u2103\u2190-\u2193\u2460-\u249b\u2500-\u25ff\u2600-\u266f·×°])"
    "|(?P<half>[\uff61-\uff9f])|(?P<letters>[\u0391-\u0451])"
)
_LEVEL_ONE = {
    "gb18030": (("gb2312", 0xB0, 0xD7), ("big5", 0xA4, 0xC6)),
    "big5hkscs": (("big5", 0xA4, 0xC6),),
    "cp932": (("euc_jp", 0xB0, 0xCF),),
    "euc_jp": (("euc_jp", 0xB0, 0xCF),),
    "cp949": (("euc_kr", 0xB0, 0xC8),),
    "euc-tw": (("big5", 0xA4, 0xC6),),
}
CODECS = tuple(_LEVEL_ONE)


def ordinary(text: str, codec: str) -> tuple[float, float]:
    """(share, likelihood): the share of what is not ASCII that is ordinary in `codec`, 0 where the commonest are
    missing; the natural logarithm of the odds of these characters."""
    beyond = [letter for letter in text if letter > "\x7f"][:LETTERS_MAX]
    kinds: Counter[str] = Counter()
    home, likelihood = 0, 0.0
    for letter in beyond:
        kind = _kind(letter)
        kinds[kind] += 1
        known = _at_home(letter, kind, codec)
        home += known
        likelihood += log(_chance(letter, kind, known))
    return (home / len(beyond) if beyond and _usual(beyond, kinds, codec) else 0.0), likelihood


def _chance(letter: str, kind: str, known: bool) -> float:
    """How often a character stands in running text, by its class: shares of the classes over their sizes."""
    if not known:
        return 0.02 / 10_000
    if kind == "marks":
        return 0.1 / 100
    if kind == "kana":
        return 0.5 / 160
    if kind == "hangul":
        return 0.5 / len(HANGUL) if letter in HANGUL else 0.5 / 2300
    return 0.45 / len(HAN) if letter in HAN else 0.5 / 4500


def _kind(letter: str) -> str:
    found = _KINDS.match(letter)
    return str(found.lastgroup) if found else "none"


def _at_home(letter: str, kind: str, codec: str) -> bool:
    if kind == "marks":
        return True
    if kind == "kana":
        return codec in ("cp932", "euc_jp")
    return kind == ("hangul" if codec == "cp949" else "han") and any(
        _within(letter, *level) for level in _LEVEL_ONE[codec]
    )


def _within(letter: str, charset: str, first: int, last: int) -> bool:
    try:
        return first <= letter.encode(charset)[0] <= last
    except UnicodeEncodeError:
        return False


def _usual(beyond: list[str], kinds: Counter[str], codec: str) -> bool:
    """Whether the text has what every text of the language has."""
    if codec == "cp949":
        common = sum(1 for letter in beyond if letter in HANGUL)
        return kinds["hangul"] > 0 and (kinds["hangul"] < FEW or common >= HANGUL_MIN * kinds["hangul"])
    if codec in ("cp932", "euc_jp"):
        return kinds["kana"] > 0 and kinds["kana"] >= KANA_MIN * (kinds["han"] + kinds["kana"])
    common = sum(1 for letter in beyond if letter in HAN)
    return kinds["han"] > 0 and (kinds["han"] < FEW or common >= COMMON_MIN * kinds["han"])
