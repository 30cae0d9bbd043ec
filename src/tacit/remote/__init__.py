"""Tables on a server, asked with the same words as tables that are open here."""

from tacit.remote.http import Wire, is_this_machine
from tacit.remote.notebook import load_notebook
from tacit.remote.remote_rows import RemotePlan
from tacit.remote.tables import RemoteQuestion, RemoteTable, Server, connect
