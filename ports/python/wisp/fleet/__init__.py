"""A fleet of devices that learn one model together, from the server's side.

    from wisp.fleet import PrivateFleet

    app = PrivateFleet("/srv/films/plan.json", "/srv/films/base.wisp", "/srv/films").server_app()

`flwr run` starts this app beside a SuperLink of Flower (pip install 'wisp[fleet]'); devices run `wisp node`, or an app
with the library. Without Flower, `simulate` runs the same rounds with devices in this process:

    wisp.fleet.simulate("plan.json", "base.wisp", "public.db", folder="trial", seed=1)

The server sees single updates and has to be trusted with them. Readers of models are not.
"""

from ._server import PrivateFleet
from ._simulate import simulate

__all__ = ["PrivateFleet", "simulate"]
