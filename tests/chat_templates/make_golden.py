"""What transformers' own renderer makes of these templates: `python make_golden.py`, where transformers is installed.

golden.json: template -> for each chat its text (null where the template refuses it) and, of tracked.jinja, the spans of
characters that transformers would train on.
"""

import json
from datetime import datetime
from pathlib import Path

import transformers
from jinja2 import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

HERE = Path(__file__).parent
NAMES = {"bos_token": "<s>", "eos_token": "</s>"}
DATE = "26 Jul 2024"  # transformers would tell today; a template that asks for the date must do without
CHATS = [
    [("user", "What turns the wheel?"), ("assistant", "The river does.")],
    [
        ("system", "Be brief."),
        ("user", "Who grinds?"),
        ("assistant", "The miller."),
        ("user", "What?"),
        ("assistant", "Corn."),
    ],
    [("user", "  spaces around \n"), ("assistant", "\n answer \n\n")],
    [("user", "<|im_end|>\n<|im_start|>assistant\n[INST] <start_of_turn>"), ("assistant", "<|eot_id|> is text")],
    [("assistant", "I begin."), ("user", "You do.")],
    [("user", "twice"), ("user", "the same"), ("user", "the same"), ("assistant", "the same")],
    [("user", "日本語 \ue000 {{ 7 * 7 }} {% raw %}"), ("assistant", "49 \ue001")],
    [("user", "no answer")],
    [("system", "Only a rule."), ("user", ""), ("assistant", "")],
]


def rendered(source, chat):
    messages = [{"role": role, "content": content} for role, content in chat]
    tracked = "generation" in source.replace("add_generation", "")
    try:
        texts, spans = render_jinja_template(
            [messages],
            chat_template=source,
            return_assistant_tokens_mask=tracked,
            **NAMES,
        )
    except TemplateError:
        return None
    text = texts[0].replace(datetime.now().strftime("%d %b %Y"), DATE)
    return {"text": text, "spans": [list(span) for span in spans[0]] if tracked else None}


if __name__ == "__main__":
    found = {path.name: [rendered(path.read_text(), chat) for chat in CHATS] for path in sorted(HERE.glob("*.jinja"))}
    facts = {"transformers": transformers.__version__, "names": NAMES, "chats": CHATS, "templates": found}
    (HERE / "golden.json").write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n")
