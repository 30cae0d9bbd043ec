"""The curator's server: the same answers over HTTP, for people who have a token and no rows."""

from tacit.server.access import KnowsTokens
from tacit.server.app import make_app
from tacit.server.desk import Desk
from tacit.server.listening import Listening, check_listening, own_hosts, serve
from tacit.server.pages import OutsidePages, Visits, page
from tacit.server.problems import Problem, unknown
from tacit.server.sign_on import Provider, fetched
from tacit.server.turns import Turns
from tacit.server.watching import Watching, log_failures_to, log_to_stderr
from tacit.server.workers import WORKERS_MAX, share_of, usual_workers
