// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const (
	overridesPath = "/v1/overrides"

	// DefaultAudit is the default number of audit entries in a list of overrides.
	DefaultAudit = 20
)

func (a *API) serveOverrides(w http.ResponseWriter, r *http.Request) *api.Problem {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return a.listOverrides(w, r)
	case http.MethodPut:
		if p := a.checkRole(w, r, RoleOperate); p != nil {
			return p
		}
		return a.putOverride(w, r)
	}
	const allow = "GET, HEAD, PUT"
	w.Header()["Allow"] = []string{allow}
	return api.NewProblem(http.StatusMethodNotAllowed, overridesPath+" takes "+allow)
}

func (a *API) listOverrides(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parseQuery(r, "audit", "key")
	if p != nil {
		return p
	}
	target, p := a.target(r.Context(), r, query.Get("key"))
	if p != nil {
		return p
	}
	most := DefaultAudit
	if text := query.Get("audit"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 0 {
			return api.NewProblem(http.StatusBadRequest, "audit is the number of entries; send a number that is not negative")
		}
	}
	answer := api.Overrides{Persistent: a.overrides.IsPersistent(), Overrides: []api.OverrideStatus{}, Audit: []api.AuditEntry{}}
	for _, s := range a.overrides.List() {
		status := statusOf(&s)
		if target != nil {
			if status.About = target.matchKind(&status.Override); status.About == "" {
				continue
			}
		}
		answer.Overrides = append(answer.Overrides, status)
	}
	for _, e := range slices.Backward(a.overrides.Audit()) {
		if len(answer.Audit) == most {
			break
		}
		if entry := entryOf(&e); target == nil || target.matchesEntry(&entry) {
			answer.Audit = append(answer.Audit, entry)
		}
	}
	slices.Reverse(answer.Audit)
	if a.roleOf(r) < RoleOperate {
		maskOverrides(&answer)
	}
	return serveJSON(w, answer)
}

func (a *API) putOverride(w http.ResponseWriter, r *http.Request) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	query, p := parseQuery(r, "local")
	switch {
	case p != nil:
		return p
	case query.Has("local") && query.Get("local") != "true":
		return api.NewProblem(http.StatusBadRequest, "local must be true, for an override on this server only; remove it for a shared override")
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return p
	}
	if !json.Valid(buf.in) {
		return api.NewProblem(http.StatusBadRequest, "the body is not JSON; send one override as in a policy file")
	}
	if halfCharacter(string(buf.in)) {
		return api.NewProblem(http.StatusBadRequest, halfDetail)
	}
	o, err := policy.ParseOverride(buf.in)
	if err != nil {
		return overrideProblem(err)
	}
	if a.roleOf(r) < RoleConfigure {
		if _, err := a.lim.Policy().NamesClients(o); err != nil {
			return overrideProblem(err)
		}
	}
	if p := a.checkOverrideRole(w, r, o); p != nil {
		return p
	}
	var refused *api.Problem
	var s overrides.Status
	if query.Has("local") {
		s, err = a.overrides.PutLocal(o, a.checkEnd(w, r, &refused))
	} else {
		s, err = a.overrides.PutIf(r.Context(), o, a.checkEnd(w, r, &refused))
	}
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return overrideProblem(err)
	}
	return serveJSON(w, statusOf(&s))
}

func (a *API) removeOverride(w http.ResponseWriter, r *http.Request) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	query, p := parseQuery(r, "author", "reason")
	if p != nil {
		return p
	}
	id := strings.TrimPrefix(r.URL.Path, overridesPath+"/")
	var refused *api.Problem
	err := a.overrides.RemoveIf(r.Context(), id, query.Get("author"), query.Get("reason"), a.checkEnd(w, r, &refused))
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return overrideProblem(err)
	}
	return serveJSON(w, struct{}{})
}

// checkEnd returns a function that checks whether the caller may end an override. It sets refused if not.
func (a *API) checkEnd(w http.ResponseWriter, r *http.Request, refused **api.Problem) func(policy.Override) error {
	return func(before policy.Override) error {
		if *refused = a.checkOverrideRole(w, r, before); *refused != nil {
			return errRole
		}
		return nil
	}
}

var errRole = errors.New("httpapi: another role is required")

// checkOverrideRole returns a problem if the caller may not create or end o. The role operate suffices for an
// override that names its clients. Other overrides can affect every client, so they require configure, as do
// overrides that do not fit the policy.
func (a *API) checkOverrideRole(w http.ResponseWriter, r *http.Request, o policy.Override) *api.Problem {
	if o.Action.Kind().Suspends || a.roleOf(r) >= RoleConfigure {
		return a.checkRole(w, r, RoleConfigure)
	}
	if names, err := a.lim.Policy().NamesClients(o); err == nil && names {
		return a.checkRole(w, r, RoleOperate)
	}
	p := a.checkRole(w, r, RoleConfigure)
	p.Detail += "; " + operateHint
	return p
}

const operateHint = "the role operate suffices only for an override that names clients. It has the key of a bucket that not all clients share, " +
	"or a match on ip:address, jwt:sub or a limit key. The match must not use \"not\" or *, and its networks must be no wider than a /16 in total, or a /32 for IPv6"

func parseQuery(r *http.Request, known ...string) (url.Values, *api.Problem) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, api.NewProblem(http.StatusBadRequest, "the query of the URL cannot be parsed; escape special characters")
	}
	for name, values := range query {
		ok := false
		for _, k := range known {
			ok = ok || k == name
		}
		switch {
		case !ok:
			return nil, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("unknown parameter %.40q; remove it", name))
		case len(values) > 1:
			return nil, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("duplicate parameter %.40q; remove one", name))
		}
	}
	return query, nil
}

func overrideProblem(err error) *api.Problem {
	mistakes, wrong := errors.AsType[policy.Errors](err)
	switch {
	case wrong:
		p := api.NewProblem(http.StatusUnprocessableEntity, "the override has an error; nothing was changed")
		if len(mistakes) > 1 {
			p.Detail = fmt.Sprintf("the override has %d errors; nothing was changed", len(mistakes))
		}
		p.Mistakes = errorDetails(mistakes)
		return p
	case errors.Is(err, overrides.ErrNotFound):
		return api.NewProblem(http.StatusNotFound, "no such override; see the list")
	case errors.Is(err, overrides.ErrInFile):
		return api.NewProblem(http.StatusConflict, "the override is in the policy file; remove it there")
	case errors.Is(err, overrides.ErrFull):
		return api.NewProblem(http.StatusConflict, "the maximum number of overrides is reached; remove some first")
	case errors.Is(err, store.ErrRevision):
		return api.NewProblem(http.StatusConflict, "another change to the overrides is in progress; nothing was changed, try again")
	}
	return api.NewProblem(http.StatusServiceUnavailable, "the store did not respond, and the change may or may not have been made; check the list before you retry")
}

func serveJSON(w http.ResponseWriter, answer any) *api.Problem {
	text, err := json.Marshal(answer)
	if err != nil {
		return api.NewProblem(http.StatusInternalServerError, "the response cannot be encoded as JSON")
	}
	buf := buffer{out: text}
	buf.serve(w, http.StatusOK)
	return nil
}
