"""Whether a text is ordinary writing: the letters of its language, in their cases and places, as often as usual.

In: a text, as it came out of some encoding. Out: how much of what is not ASCII in it is at home in the language that it
shows, how sure that language is, and how likely its letters are. Bytes that are read in the wrong encoding give letters
that the language does not have or seldom uses, symbols within words, capitals within words. It decodes nothing.

The letters are those of the languages' orthographies; where a language has a script of its own, they stand by how often
they are written. Languages that are not here are never found ordinary.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from math import exp, log
from typing import NamedTuple

from tasks.text.likely import likely_languages

_LATIN = """
de äöüßéàè|fr éèàêçôâîùûëïœæüÿ|es óíáéñúü|pt ãçáéóêíõâúàôü|it àèòùéìíîóú|nl ëéïóèüöáêçâ|sv äåöéàüè|da åæøéäö
no åøæéòôóèêâä
nn åøæéòôóèêâ|fi äöåšžé|is áðíóþæéöúýø|fo áóíøðæúýå|ca óàèéíçòïúü·|gl óáíéñúüï|eu ñçü|oc àèòéóíçúáïü
af êëéèôöûîïáúó|ga áéíóú
gd àèìòùéóá|cy âŵôîêŷûáéíóúàèìòùäëïöü|br ñêùâüô|lb äëéöüôîèê|sc àòùìèéíú|co àùèìòâîéï|rm àèéìòùöüïâ|vec àéèìòóùñç
lmo àèéìòóùöüâ|scn àùìòèâîêôûé|an óáíéúñü|ast óáíéúñü|wa åâéèêîôûçëï|fy âêôûúéëïäö|nds äöüß|als äöüßàéèâ|sq ëç
pl łęóążśćńź|cs áíěéřčžýšůúóťďňä|sk áíčžýéúľšťôäóňďĺŕ|hu áéőöóüíúű|sl čšžćđ|hr čšžćđ|bs čšžćđ|sh čšžćđ|ro ăîţțşșâ
hsb ěčłšćóńžřźś|dsb ěłšćóńžčřŕźś|et äõüöšž|lv āīēšūņļžģķčŗō|lt ėųįšžąūęč|tr ıişüğçöâûî|az əıişüğçö|ku êîûçş
mt ħżġċàùòèìî
eo ĉĝŭŝĵĥ|la æœ|en éèêëïñüçöâàôîóáí|id é|ms é|tl ñ|ceb ñ|ia é|io é|ie é
vi \u0301\u0300đăâêôơưàáạảãấầậẩẫắằặẳẵếềệểễéèẹẻẽốồộổỗóòọỏõớờợởỡíìịỉĩứừựửữúùụủũýỳỵỷỹ\u0303\u0309\u0323
"""
_OWN_SCRIPT = """
ru оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё|uk оаинвіерткслудмпязьбгчйхжшцюєїфщґʼ|be анаіеоысртлкдуцмяпзвьгбчйшжхўёюэфʼ
bg аоиетнрвсдлпкмзъбугячщхжшцюфйьѝ|mk аоиетнрвсдлкмпјзугбчшцжхфќњѓљџѕѐѝ|sr аоиенрстјувкмдплзгбчцшхћжфњљџђ
kk аендірытлсқомкбұғпуиөзжгшәңйүвхяэюцфчёъьщһ|tg аидонрткмбсшлҳувзгҷқфхпчейғӯӣжъюяэёцщы
mn аэногрдлтйусхүбимөвзшячжеыкцпьюёфъщ|el αοιετσνηυρπκμλςόίάέήγδώθύφχβξωζψϊΐϋΰ
he יוהלאתרבמשנםדעקחכפןגסטצזךףץ\u05b0\u05b7\u05b4\u05bc\u05b8\u05b6\u05b5\u05b9\u05c1\u05b2\u05be\u05c2\u05b1\u05b3
yi יואערןטדנלגםמכזסבהפקחתצשךףץ\u05b7\u05b8
ar اليمنتوربدعفسهكقحجأةشصطىخإزءذثئضغآظؤ\u064b\u064e\u0651\u064f\u0650\u0652\u064c\u064d\u0640
fa ایرندهومتبشسکزلپگخفآعچقجحژصطغئضثذظءؤأ|ur ایرکےںونہمتسلپبدہجھعگقچفشحخصٹزآئطڑضظثغذڈءؤژۂۃأ
th านรอกเงวมลยทสตดปคหพช\u0e31\u0e34\u0e35\u0e49\u0e48\u0e30\u0e37\u0e38\u0e33\u0e39\u0e41\u0e02\u0e44\u0e1a\u0e42\u0e43
"""
_THAI_SELDOM = "".join(chr(code) for code in (*range(0x0E01, 0x0E3B), *range(0x0E40, 0x0E5C)))

_QUOTES = "\xa0«»“”„‚‘’–—…‹›"
_SYMBOLS = "§©®™€£¢½¼¾²³×÷±°ªº•·‰†¶µ´¨¬№"
_ALIKE = frozenset("ABCEHIKMNOPTXYaceiopxyuv")
"""Letters of ASCII that people set among Cyrillic and Greek ones, since they look alike."""
_TAG = re.compile(r"<[^<>]{0,2000}>|&#?\w{1,10};")
_DIGIT_WITHIN = re.compile(r"[^\W\d_]{2}\d(?=[^\W\d_]{2})")
_BEYOND = re.compile(r"[^\x00-\x7f]")
_WORD = re.compile(r"\b(?=[^\W\d_]{2})[^\W\d_]*[^\x00-\x7f\W\d_][^\W\d_]*")
"""A word of two letters at least with one beyond ASCII."""
STRANGE_MAX = 0.5
"""More signs than this among what is beyond ASCII, and it is no writing at all."""
DECAY = 9.0
"""The nth letter of an alphabet by frequency is exp(n / DECAY) times rarer than the first, about as in Russian."""
LOST, SYMBOL, QUOTE, CAPITAL = log(1e-5), log(2e-3), log(0.02), log(0.1)
LANGUAGE_BY = 600
"""Characters by which the language is told."""


class Writing(NamedTuple):
    """home: share of the characters beyond ASCII that are at home; sure: the language, 0 to 1; likelihood: natural
    logarithm of the odds of these characters and of the language."""

    home: float
    sure: float
    likelihood: float
    language: str | None
    own_script: bool = False


def _alphabets() -> dict[str, dict[str, float]]:
    """Language -> letter -> natural logarithm of its share."""
    rows = [row.split(" ") for line in (_LATIN + _OWN_SCRIPT).split("\n") for row in line.split("|") if row]
    found = {}
    for name, letters in rows:
        ranked = dict.fromkeys(letters + (_THAI_SELDOM if name == "th" else ""))
        weights = [exp(-rank / DECAY) for rank in range(len(ranked))]
        found[name] = {letter: log(weight / sum(weights)) for letter, weight in zip(ranked, weights, strict=True)}
    return found


NONE = Writing(0.0, 0.0, -1e9, None)
ALPHABETS = _alphabets()
OWN = frozenset(row.split(" ")[0] for line in _OWN_SCRIPT.split("\n") for row in line.split("|") if row)


def writing(text: str) -> Writing:
    """How ordinary `text` is, in the language that fits it best."""
    text = _TAG.sub(" ", text)
    beyond = Counter(_BEYOND.findall(text))
    letters = {letter: count for letter, count in beyond.items() if _is_letter(letter)}
    total = beyond.total()
    if sum(count for letter, count in beyond.items() if letter not in letters) > STRANGE_MAX * total:
        return NONE
    marks, odd = _symbols(text)
    odd += _misplaced(text)
    marks += CAPITAL * _capitals(text)
    best = NONE
    for language, sure in likely_languages(text[:LANGUAGE_BY]):
        if (alphabet := ALPHABETS.get(language)) is None or sure <= 0:
            continue
        shares = [(_share(letter, alphabet), count) for letter, count in letters.items()]
        lost = odd + sum(count for share, count in shares if share == LOST)
        likelihood = sum(share * count for share, count in shares) + marks + odd * LOST + log(sure)
        home = max(0.0, 1 - lost / max(1, total))
        best = max(best, Writing(home, sure, likelihood, language, language in OWN), key=lambda one: one.likelihood)
    return best


def _share(letter: str, alphabet: dict[str, float]) -> float:
    if letter in alphabet:
        return alphabet[letter]
    small = letter.lower()[0]
    return alphabet.get(small, -1.0 if small < "\x7f" else LOST) if small != letter else LOST


@cache
def _is_letter(letter: str) -> bool:
    return (letter.isalpha() and letter not in "ªº") or unicodedata.category(letter) == "Mn"


def _misplaced(text: str) -> int:
    """Signs that stand in a word as no writer sets them: capitals after small letters, two scripts, digits."""
    count = 0
    for word, times in Counter(_WORD.findall(text)).items():
        rest = word[1:]
        if rest != rest.lower() and not word.isupper():
            count += times * sum(map(str.isupper, rest))
        others = sum(1 for letter in word if letter >= "\u0370" and not "\u1e00" <= letter < "\u1f00")
        if 0 < others < sum(1 for letter in word if letter not in _ALIKE):
            count += times * sum(1 for letter in word if letter > "\x7f")
    return count + sum(1 for found in _DIGIT_WITHIN.findall(text) if not found.isascii())


def _capitals(text: str) -> int:
    """Words that begin with a capital beyond ASCII, or are all in capitals: the first of each run."""
    places = (found.start() for found in _BEYOND.finditer(text) if found[0].isupper())
    return sum(1 for at in places if not text[at - 1 : at].isupper())


def _symbols(text: str) -> tuple[float, int]:
    """How likely the symbols are that texts hold; how many they do not hold, or stand between letters."""
    usual, odd = 0.0, 0
    for found in _BEYOND.finditer(text):
        letter, at = found[0], found.start()
        if _is_letter(letter):
            continue
        around = text[at - 1 : at].isalpha() + text[at + 1 : at + 2].isalpha()
        if letter in _QUOTES:
            strange = around == 2 and letter not in "\xa0–—…’"
        elif letter in "¿¡":
            strange = text[at - 1 : at].isalpha()
        else:
            strange = letter not in _SYMBOLS or around == 2 or (around == 1 and letter not in "ªº°™®²³©§")
        odd += strange
        usual += 0.0 if strange else QUOTE if letter in _QUOTES else SYMBOL
    return usual, odd
