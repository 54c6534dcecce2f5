"""Which half of a benchmark is held out of comparing judges with people."""

from django.db import models

from accounts.fields import doer
from bank.models.catalogue import Benchmark


class HeldOutHalf(models.Model):
    """The half of a benchmark's samples on which no judge is compared with people before somebody asks for it, see
    ``bank.samples.held_out``. It is drawn once: ``below`` is the place below which pictures and prompts are in it.
    """

    benchmark = models.OneToOneField(Benchmark, on_delete=models.CASCADE, related_name="held_out_half")
    below = models.CharField(max_length=64)
    by = doer()
    drawn_at = models.DateTimeField(auto_now_add=True)
