"""Fetches a file that somebody has sent, and no more of it than may be."""

from collections.abc import Mapping

import httpx2

from hermes.surfaces.gateway.adapter import DeliveryRefused, Unreachable


async def download(
    client: httpx2.AsyncClient, address: str, most: int, headers: Mapping[str, str] = {}
) -> bytes:
    """Its bytes. The address is in no error: it may hold a secret."""
    data = bytearray()
    try:
        async with client.stream("GET", address, headers=dict(headers)) as answered:
            if answered.status_code != 200:
                raise DeliveryRefused(
                    f"The platform does not give it out ({answered.status_code})."
                )
            async for piece in answered.aiter_bytes():
                data += piece
                if len(data) > most:
                    raise DeliveryRefused(f"It has more than {most:,} bytes.")
    except httpx2.HTTPError as error:
        raise Unreachable(
            f"It could not be fetched ({type(error).__name__})."
        ) from None
    return bytes(data)
