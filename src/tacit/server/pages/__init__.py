"""The server's pages: the same verbs in a browser, for people who write no Python."""

from tacit.server.pages.page_look import OutsidePages, page
from tacit.server.pages.page_routes import add_pages, problem_page
from tacit.server.pages.visits import Visits
