"""Other people's trainers on our data: transformers, Lightning, TRL and datasets, where they are installed.

Run by hand in an environment that has them (see docs/training.md); the logs of runs stand in docs/logs/. Models have
random weights, so nothing is downloaded.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader

from flows.export_forms import FORMS
from tasks.artifacts.shards import ShardReader
from tests.pin_maker import FINGERPRINT, lay_pin
from training.collate import LLMDataCollator
from training.encoders import encoder, end_id, unknown_id, vocabulary_size
from training.examples import ExampleDataset
from training.inspect_batches import verify_pipeline
from training.loader import build_dataloader
from training.masks import IGNORED, create_combined_attention_mask
from training.model import GPT
from training.online import LMTextDataset
from training.pin import Pin, open_pin

V, WIDTH = 100, 16
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
foreign = pytest.mark.filterwarnings("ignore")


def needed(name: str):
    return pytest.importorskip(name, reason=f"{name} is not installed: see docs/training.md, Other trainers")


@pytest.fixture(scope="module")
def pin(tmp_path_factory: pytest.TempPathFactory) -> Pin:
    root = tmp_path_factory.mktemp("project")
    documents = [[(7 * n + k * k) % 90 + 3 for k in range(5 + n % 20)] + [2] for n in range(200)]
    lay_pin(root, {"a": {"train": [documents[:90], documents[90:]]}}, width=WIDTH, vocab_size=V)
    return open_pin(FINGERPRINT, root)


def llama(attention: str = "sdpa"):
    transformers = needed("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=V, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, attn_implementation=attention, pad_token_id=2, eos_token_id=2, bos_token_id=1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


@pytest.fixture(params=["ours", pytest.param("llama", marks=[pytest.mark.long, foreign])])
def logits_of(request: pytest.FixtureRequest):
    """A function (ids, position_ids or None, mask [B, 1, T, T] or None) -> logits."""
    if request.param == "ours":
        torch.manual_seed(0)
        return GPT(V, layers=2, heads=2, width=32).eval()
    model = llama().eval()
    return lambda ids, positions=None, mask=None: model(ids, position_ids=positions, attention_mask=mask).logits


DOCUMENTS = [[5, 6, 7, 2], [20, 21, 22, 23, 2], [40, 2]]


def packed() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One row of DOCUMENTS and padding: ids, positions, document ids."""
    ids = [token for document in DOCUMENTS for token in document] + [2, 2]
    positions = [place for document in DOCUMENTS for place in range(len(document))] + [0, 1]
    numbers = [number for number, document in enumerate(DOCUMENTS, 1) for _ in document] + [0, 0]
    return torch.tensor([ids]), torch.tensor([positions]), torch.tensor([numbers])


def test_a_documents_logits_are_equal_alone_and_packed(logits_of) -> None:
    """Case 30: masked, another document changes nothing; unmasked, it does."""
    ids, positions, numbers = packed()
    mask = create_combined_attention_mask(numbers > 0, numbers)
    together, leaking = logits_of(ids, positions, mask), logits_of(ids)
    start = 0
    for number, document in enumerate(DOCUMENTS):
        alone = logits_of(torch.tensor([document]))
        span = slice(start, start + len(document))
        assert torch.allclose(together[0, span], alone[0], atol=1e-5)
        assert torch.allclose(leaking[0, span], alone[0], atol=1e-5) == (number == 0)
        start += len(document)
    ids[0, 0] = 99
    changed = logits_of(ids, positions, mask)
    assert torch.equal(changed[0, 4:], together[0, 4:]) and not torch.equal(changed[0, :4], together[0, :4])


def test_left_and_right_padding_leave_logits_alone(logits_of) -> None:
    """Failure 25, with a collator's batch as it is."""
    for side in ("left", "right"):
        batch = LLMDataCollator(2, padding_side=side, multiple_of=8)(DOCUMENTS)
        mask = create_combined_attention_mask(batch["attention_mask"])
        logits = logits_of(batch["input_ids"], batch["position_ids"], mask)
        for row, document in enumerate(DOCUMENTS):
            seen = batch["attention_mask"][row].bool()
            assert torch.allclose(logits[row][seen], logits_of(torch.tensor([document]))[0], atol=1e-5)


def own_losses(model, batches, learning_rate: float) -> list[float]:
    """Our own loop: the loss by the model's convention, summed over targets and divided by their number."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for batch in batches:
        given = {name: values for name, values in batch.items() if name != "labels"}
        logits = model(**given).logits[:, :-1]
        targets = batch["labels"][:, 1:]
        total = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED,
                                         reduction="sum")  # fmt: skip
        loss = total / (targets != IGNORED).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


def trainer_losses(transformers, model, dataset, collate, folder: Path, **options) -> list[float]:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=6, per_device_train_batch_size=4, learning_rate=0.1, optim="sgd",
        lr_scheduler_type="constant", logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", seed=1,
        disable_tqdm=True, dataloader_num_workers=0, **options,
    )  # fmt: skip

    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    trainer = InOrder(model=model, args=arguments, train_dataset=dataset, data_collator=collate)
    trainer.train()
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


@pytest.mark.long
@foreign
def test_transformers_trainer_has_our_loops_loss_on_a_pin(pin: Pin, tmp_path: Path) -> None:
    """Failure 18: were the labels shifted twice, the losses would differ from the first step on."""
    transformers = needed("transformers")
    dataset = ExampleDataset(pin, labels="model")
    theirs = trainer_losses(transformers, llama(), dataset, None, tmp_path)
    batches = [batch for _, batch in zip(range(6), DataLoader(dataset, 4), strict=False)]
    assert verify_pipeline(batches, 6, labels="model", vocab_size=V).ok
    assert theirs == pytest.approx(own_losses(llama(), batches, 0.1), abs=1e-4)
    assert theirs[-1] < theirs[0]
    direct = build_dataloader(pin, batch_size=4, labels="model", steps=6)
    for batch, other in zip(direct, batches, strict=True):
        assert torch.equal(batch.input_ids, other["input_ids"]) and torch.equal(batch.labels, other["labels"])


@pytest.mark.long
@foreign
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_llama_keeps_isolated_documents_apart_by_their_positions(pin: Pin, attention: str) -> None:
    """Failure 24: positions without a mask, as ExampleDataset gives them, are enough for transformers' own masks; but
    only without a cache (use_cache=False, which its Trainer sets): with one they are ignored, in silence."""
    model = llama(attention).eval()
    by_positions = next(iter(DataLoader(ExampleDataset(pin, isolate_documents=True), 8)))
    batch = next(iter(build_dataloader(pin, batch_size=8, labels="model", isolate_documents=True)))
    torch.testing.assert_close(batch.input_ids, by_positions["input_ids"])
    assert int(batch.document_ids.max()) > 1 and "attention_mask" not in by_positions
    given = batch.model_inputs()
    mask = given["attention_mask"]
    given["attention_mask"] = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    theirs, ours = model(**by_positions, use_cache=False), model(**given)
    seen = batch.attention_mask
    torch.testing.assert_close(theirs.logits[seen], ours.logits[seen], atol=1e-5, rtol=0)
    assert float(theirs.loss) == pytest.approx(float(ours.loss), abs=1e-5)
    for leaking in (model(input_ids=batch.input_ids, labels=batch.labels), model(**by_positions, use_cache=True)):
        assert abs(float(leaking.loss) - float(ours.loss)) > 1e-4


@pytest.mark.long
@foreign
def test_transformers_trainer_keeps_isolated_documents_apart(pin: Pin, tmp_path: Path) -> None:
    """Its losses are those of our loop with the combined mask."""
    transformers = needed("transformers")
    dataset = ExampleDataset(pin, isolate_documents=True)
    theirs = trainer_losses(transformers, llama(), dataset, None, tmp_path)
    batches = []
    for batch in build_dataloader(pin, batch_size=4, labels="model", isolate_documents=True, steps=6):
        given = batch.model_inputs()
        mask = batch.combined_mask(torch.float32)
        batches.append({**given, "attention_mask": mask})
    assert theirs == pytest.approx(own_losses(llama(), batches, 0.1), abs=1e-4)


@pytest.mark.long
@foreign
@pytest.mark.parametrize("accumulation", [1, 2])
def test_transformers_trainer_has_our_loops_loss_on_collated_text(tmp_path: Path, accumulation: int) -> None:
    """Failure 31: with rows of unlike length, a loss averaged per micro-batch would differ from one per token."""
    transformers = needed("transformers")
    samples = [{"input_ids": [(n * k) % 90 + 3 for k in range(1, 4 + 3 * n % 17)]} for n in range(4 * 6 * 2)]
    collate = LLMDataCollator(2, padding_side="left", multiple_of=8)
    theirs = trainer_losses(
        transformers, llama(), samples, collate, tmp_path, gradient_accumulation_steps=accumulation,
        remove_unused_columns=False,
    )  # fmt: skip
    size = 4 * accumulation
    batches = [collate(samples[at : at + size]) for at in range(0, 6 * size, size)]
    assert theirs == pytest.approx(own_losses(llama(), batches, 0.1), abs=1e-4)


@pytest.mark.long
@foreign
def test_lightning_trains_on_a_pin(pin: Pin, tmp_path: Path) -> None:
    lightning = needed("lightning")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.losses = llama(), []

        def training_step(self, batch, number):
            loss = self.model(**batch).loss
            self.losses.append(float(loss.detach()))
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    dataset = ExampleDataset(pin, labels="model")
    module = Module()
    trainer = lightning.Trainer(
        max_steps=6, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        default_root_dir=tmp_path, gradient_clip_val=1.0, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(dataset, 4))
    batches = [batch for _, batch in zip(range(6), DataLoader(dataset, 4), strict=False)]
    assert module.losses == pytest.approx(own_losses(llama(), batches, 0.1), abs=1e-4)


@pytest.mark.long
@foreign
def test_a_datasets_dataset_is_read_as_rows(tmp_path: Path) -> None:
    datasets = needed("datasets")
    texts = [f"the miller grinds corn {n} times" for n in range(100)]

    class Bytes:
        eos_id = 0

        def encode(self, text: str) -> list[int]:
            return list(text.encode())

    rows = [{"instruction": text, "output": "yes"} for text in texts]
    theirs = LMTextDataset(datasets.Dataset.from_list(rows), Bytes(), 32, min_length=2, folder=tmp_path)
    ours = LMTextDataset(rows, Bytes(), 32, min_length=2, folder=tmp_path)
    assert theirs.documents == 100
    assert [one["input_ids"].tolist() for one in theirs] == [one["input_ids"].tolist() for one in ours]
    streamed = datasets.Dataset.from_list([{"content": text} for text in texts]).to_iterable_dataset()
    assert LMTextDataset(streamed, Bytes(), 32, folder=tmp_path).documents == 100


def fast_tokenizer(transformers):
    """Words to ids, made here: the last three pieces are special."""
    tokenizers = needed("tokenizers")
    words = ["the", "miller", "grinds", "corn", "<unk>", "</s>", "<pad>"]
    plain = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>")
    )
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    plain.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 5)])
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="<unk>", eos_token="</s>", pad_token="<pad>", model_max_length=4
    )
    return plain, wrapped


@pytest.mark.long
def test_transformers_and_tokenizers_encode_without_special_pieces() -> None:
    """Warnings are errors here: a text beyond model_max_length is none of the tokenizer's business."""
    plain, wrapped = fast_tokenizer(needed("transformers"))
    text = "the miller grinds corn the miller"
    assert encoder(wrapped)(text).tolist() == encoder(plain)(text).tolist() == [0, 1, 2, 3, 0, 1]
    assert 5 not in encoder(wrapped)("the </s> miller").tolist()
    assert (end_id(wrapped), unknown_id(wrapped), vocabulary_size(wrapped)) == (5, 4, 7)
    assert vocabulary_size(plain) == 7 and LLMDataCollator(wrapped).pad_id == 6
    dataset = LMTextDataset([text, "corn"], wrapped, 4)
    assert [one["labels"].tolist() for one in dataset] == [[1, 2, 3, 0], [1, 5, 3, 5]]
    with pytest.raises(ValueError, match="pass eos_id="):
        LMTextDataset([text], plain, 4)


@pytest.mark.long
@foreign
@pytest.mark.parametrize("column", ["labels", "assistant_masks"])
def test_trl_trains_on_chats_with_loss_on_answers_only(tmp_path: Path, column: str) -> None:
    """Failure 29: the labels are counted in the batches that TRL itself makes, and its loss is ours."""
    trl, datasets, transformers = needed("trl"), needed("datasets"), needed("transformers")
    rows = [([1, 10 + n, 11, 2, 40 + n, 41, 2], 4) if n % 2 else ([1, 10 + n, 2, 60, 2], 3) for n in range(12)]
    answers = [[int(place >= start) for place in range(len(ids))] for ids, start in rows]
    labels = [[token if own else IGNORED for token, own in zip(ids, mask, strict=True)]
              for (ids, _), mask in zip(rows, answers, strict=True)]  # fmt: skip
    held = {"input_ids": [ids for ids, _ in rows], column: labels if column == "labels" else answers}
    arguments = trl.SFTConfig(
        output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=4, report_to=[], use_cpu=True, bf16=False,
        logging_steps=1, save_strategy="no", disable_tqdm=True, max_length=16, learning_rate=0.1, optim="sgd",
        lr_scheduler_type="constant",
    )  # fmt: skip

    class InOrder(trl.SFTTrainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    _, tokenizer = fast_tokenizer(transformers)
    trainer = InOrder(
        model=llama(), args=arguments, train_dataset=datasets.Dataset.from_dict(held), processing_class=tokenizer
    )
    seen = [int((batch["labels"] != IGNORED).sum()) for batch in trainer.get_train_dataloader()]
    assert seen == [2 * 2 + 2 * 3] * 3
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    ours = [{"input_ids": ids, "labels": own} for (ids, _), own in zip(rows, labels, strict=True)]
    collate = LLMDataCollator(6, padding_side="right")
    assert losses == pytest.approx(own_losses(llama(), [collate(ours[at : at + 4]) for at in (0, 4, 8)], 0.1), abs=1e-4)


@pytest.mark.long
@foreign
def test_trl_trains_on_an_export_with_loss_on_answers_only(tmp_path: Path) -> None:
    """`gristmill export PIN huggingface`: labels are counted in TRL's own batches against the chats it was made of."""
    trl, datasets, transformers = needed("trl"), needed("datasets"), needed("transformers")
    chats = [[1, 10 + n % 50, 11, *[60 + (n + k) % 30 for k in range(1 + n % 9)], 2] for n in range(60)]
    learnt = [int(place > 2) for chat in chats for place in range(len(chat))]
    flat = [token for chat in chats for token in chat]
    folder = lay_pin(tmp_path, {"a": {"train": [chats]}}, width=WIDTH, vocab_size=V, losses={"a": learnt})
    home = folder / "shard" / "a" / "train"
    FORMS["huggingface"](tmp_path, "a", "train", home / "shard_00000", ShardReader(home, "shard_00000"))
    exported = datasets.load_dataset(
        "parquet", data_files=[str(path) for path in (tmp_path / "train").glob("*.parquet")], split="train",
        cache_dir=str(tmp_path / "cache"),
    )  # fmt: skip
    arguments = trl.SFTConfig(
        output_dir=str(tmp_path / "out"), max_steps=4, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        bf16=False, logging_steps=1, save_strategy="no", disable_tqdm=True, max_length=WIDTH + 1, learning_rate=0.1,
        optim="sgd", lr_scheduler_type="constant",
    )  # fmt: skip

    class InOrder(trl.SFTTrainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    _, tokenizer = fast_tokenizer(transformers)
    trainer = InOrder(model=llama(), args=arguments, train_dataset=exported, processing_class=tokenizer)
    rows = [slice(start, start + WIDTH + 1) for start in range(0, len(flat) - 1, WIDTH)]
    answers = [sum(learnt[row]) for row in rows]
    seen = [int((batch["labels"] != IGNORED).sum()) for batch in trainer.get_train_dataloader()]
    assert seen == [sum(answers[at : at + 4]) for at in range(0, len(rows), 4)]
    assert 0 < sum(seen) < 0.7 * sum(len(flat[row]) for row in rows)
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    labels = [token if own else IGNORED for token, own in zip(flat, learnt, strict=True)]
    ours = [{"input_ids": torch.tensor([flat[row] for row in rows[at : at + 4]]),
             "labels": torch.tensor([labels[row] for row in rows[at : at + 4]])} for at in range(0, 16, 4)]  # fmt: skip
    assert losses == pytest.approx(own_losses(llama(), ours, 0.1), abs=1e-4)


CHAT = (
    "{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}{{ message.content }} </s>"
    "{% endgeneration %}{% else %}{{ message.content }} {% endif %}{% endfor %}"
)


@pytest.mark.long
@foreign
def test_trl_tokenizes_messages_and_trains_on_answers_only(tmp_path: Path) -> None:
    """Chats as ingest keeps them (role and content), with TRL's own assistant_only_loss."""
    trl, datasets, transformers = needed("trl"), needed("datasets"), needed("transformers")
    _, tokenizer = fast_tokenizer(transformers)
    tokenizer.chat_template, tokenizer.model_max_length = CHAT, 64
    answers = ["the corn", "corn corn corn", "grinds", "the miller grinds"]
    rows = [
        {"messages": [{"role": "user", "content": "the miller"}, {"role": "assistant", "content": answer}]}
        for answer in answers
    ]
    arguments = trl.SFTConfig(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, report_to=[], use_cpu=True, bf16=False,
        logging_steps=1, save_strategy="no", disable_tqdm=True, max_length=32, assistant_only_loss=True,
    )  # fmt: skip
    trainer = trl.SFTTrainer(
        model=llama(), args=arguments, train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer
    )
    batch = next(iter(trainer.get_train_dataloader()))
    kept = sorted(row[row != IGNORED].tolist() for row in batch["labels"])
    assert kept == [[0, 1, 2, 5], [0, 3, 5], [2, 5], [3, 3, 3, 5]]
    trainer.train()
    assert [line["loss"] > 0 for line in trainer.state.log_history if "loss" in line] == [True]
