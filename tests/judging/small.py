"""A small benchmark of pairs, and a patience that suits tests."""

import hashlib
import io

from PIL import Image

from bank import media
from bank.models import Benchmark, EvaluatedModel, Item, ItemResponse, Response, Sample, SampleImage
from bank.models.items import content_hash
from judging.work import Patience
from tests.hidden import write_criteria

QUICK = Patience(backoff=0.01, longest_wait=0.2, outage=0.5, try_for=0.1, drain=1.0, tick=0.05, poll=0.02)


def picture(number: int) -> tuple[str, int, int]:
    """Store a small PNG; returns its hash and size."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, 90, 120)).save(buffer, "PNG")
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    media.write(f"images/{sha256[:2]}/{sha256}.png", buffer.getvalue())
    return sha256, 8, 8


def make_benchmark(*, samples: int = 3, slug: str = "everyday", pictures: bool = True, **columns) -> Benchmark:
    """Samples with one picture, criteria and a pair of answers each; the first model's answer names the criterion."""
    benchmark = Benchmark.objects.create(slug=slug, title=slug.title(), **({"visibility": "public"} | columns))
    models = [EvaluatedModel.objects.get_or_create(name=name)[0] for name in ("heron-7b", "osprey-13b")]
    criteria = []
    for number in range(samples):
        sample = Sample.objects.create(
            benchmark=benchmark,
            key=str(number),
            instruction=f"What is on table {number}?",
            question_type="closed-ended",
            position=number,
        )
        if pictures:
            sha256, width, height = picture(number)
            SampleImage.objects.create(
                sample=sample, sha256=sha256, original_sha256=sha256, kind="png", width=width, height=height
            )
        criteria.append({"sample": sample, "key": "1", "text": f"Names the walnut bowl, number {number}."})
        texts = (f"A walnut bowl stands on table {number}.", "There is something on it, and it looks quite nice to me.")
        answers = [
            Response.objects.create(sample=sample, model=model, text=text)
            for model, text in zip(models, texts, strict=True)
        ]
        hashed = content_hash(kind="pair", sample_id=sample.pk, response_ids=[answer.pk for answer in answers])
        item = Item.objects.create(kind="pair", sample=sample, content_hash=hashed)
        for position, answer in enumerate(answers):
            ItemResponse.objects.create(item=item, position=position, response=answer)
    write_criteria(criteria)
    return benchmark
