"""What tries to prove us wrong: audits of mechanisms and questions, and the statistics that judge them."""
