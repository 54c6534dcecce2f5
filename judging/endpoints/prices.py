"""Prices of models at public endpoints, as the package genai-prices lists them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version

from genai_prices import Usage, calc_price
from genai_prices.types import TieredPrices

PRICES = ("price_in", "price_cached", "price_out")  # columns of a judge


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens: sent, sent and read before, received. ``source`` says where they are from."""

    price_in: float
    price_cached: float | None
    price_out: float
    source: str

    @property
    def words(self) -> str:
        again = "" if self.price_cached is None else f", {self.price_cached:g} sent again"
        return f"${self.price_in:g} sent{again} and ${self.price_out:g} received, a million tokens ({self.source})"


def listed(base_url: str, model: str) -> Prices | None:
    """The prices of a model at an address today; None where that is not known. Of prices that rise with the length of a
    prompt, the lowest.
    """
    now = datetime.now(UTC)
    try:
        found = calc_price(Usage(input_tokens=1), model, provider_api_url=base_url, genai_request_timestamp=now)
    except LookupError:
        return None
    prices = found.model.get_prices(now)
    sent, received = _base(prices.input_mtok), _base(prices.output_mtok)
    if sent is None or received is None:
        return None
    source = f"{found.provider.name}, by genai-prices {version('genai-prices')}"
    return Prices(sent, _base(prices.cache_read_mtok), received, source)


def _base(price: Decimal | TieredPrices | None) -> float | None:
    if price is None:
        return None
    return float(price.base if isinstance(price, TieredPrices) else price)
