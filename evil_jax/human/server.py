"""The server of a study: pages to raters, one at a time, and what they said into a database. For few people at a time.

Paths (below the path of `behind`, if there is one):

    GET  /                      what this is, and consent; with ?PROLIFIC_PID=&STUDY_ID=&SESSION_ID= the rater's session
    POST /begin                 form; a session for this browser, in a cookie
    GET  /page                  the page that this rater works on, with what was filled in before; or on to /done
    POST /page/{page}/draft     JSON {"token": TEXT, "fields": {NAME: [VALUE, ...]}} -> 200 {"saved": true}
    POST /page/{page}/submit    the same -> 200 {"next": URL}; 422 {"problems": [{"field", "item", "rule", "message"}]}
    GET  /images/{name}         a picture of the study
    GET  /done                  thanks, and the completion code
    GET  /admin                 progress, for who has the token; POST /admin/login, /admin/logout, /admin/rater;
                                GET /admin/ratings.csv, /admin/ratings.jsonl, /admin/payments.csv

Any other answer is JSON {"error": TEXT} to a POST of JSON (400 what was sent is no form, 403 no session or not this
rater's page, 413 too large, 429 too fast, 503 busy) and a page that says it otherwise.
"""
