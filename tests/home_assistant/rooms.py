"""Two rooms with a satellite each."""

import contextlib

from satellite import Satellite


@contextlib.asynccontextmanager
async def rooms(house):
    """Satellites in the kitchen and in the office."""
    satellites = {room: await Satellite(room).join(house) for room in ("kitchen", "office")}
    try:
        yield satellites
    finally:
        for satellite in satellites.values():
            await satellite.leave(house)
