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

	// DefaultAudit is how many entries of the audit a list of overrides has where
	// nobody asks for more, or for fewer.
	DefaultAudit = 20
)

// serveOverrides serves /v1/overrides.
func (a *API) serveOverrides(w http.ResponseWriter, r *http.Request) *api.Problem {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return a.listOverrides(w, r)
	case http.MethodPut:
		if p := a.permit(w, r, Operate); p != nil {
			return p
		}
		return a.putOverride(w, r)
	}
	const allow = "GET, HEAD, PUT"
	w.Header()["Allow"] = []string{allow}
	return api.NewProblem(http.StatusMethodNotAllowed, overridesPath+" takes "+allow)
}

func (a *API) listOverrides(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parameters(r, "audit", "key")
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
			return api.NewProblem(http.StatusBadRequest, "audit says how many entries are wanted; send a number, at least 0")
		}
	}
	answer := api.Overrides{Persistent: a.overrides.Persistent(), Overrides: []api.OverrideStatus{}, Audit: []api.AuditEntry{}}
	for _, s := range a.overrides.List() {
		status := statusOf(&s)
		if target != nil {
			if status.About = target.about(&status.Override); status.About == "" {
				continue
			}
		}
		answer.Overrides = append(answer.Overrides, status)
	}
	for _, e := range slices.Backward(a.overrides.Audit()) {
		if len(answer.Audit) == most {
			break
		}
		if entry := entryOf(&e); target == nil || target.concerns(&entry) {
			answer.Audit = append(answer.Audit, entry)
		}
	}
	slices.Reverse(answer.Audit)
	if a.roleOf(r) < Operate {
		maskOverrides(&answer)
	}
	return serveJSON(w, answer)
}

func (a *API) putOverride(w http.ResponseWriter, r *http.Request) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	query, p := parameters(r, "local")
	switch {
	case p != nil:
		return p
	case query.Has("local") && query.Get("local") != "true":
		return api.NewProblem(http.StatusBadRequest, "local is true for an override in this server alone; remove it for a shared one")
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return p
	}
	if !json.Valid(buf.in) {
		return api.NewProblem(http.StatusBadRequest, "the body is not JSON; send one override, as it stands in a policy file")
	}
	if halfCharacter(string(buf.in)) {
		return api.NewProblem(http.StatusBadRequest, halfDetail)
	}
	o, err := policy.ParseOverride(buf.in)
	if err != nil {
		return overrideProblem(err)
	}
	if a.roleOf(r) < Configure {
		if _, err := a.lim.Policy().NamesClients(o); err != nil {
			return overrideProblem(err)
		}
	}
	if p := a.permitOverride(w, r, o); p != nil {
		return p
	}
	var refused *api.Problem
	var s overrides.Status
	if query.Has("local") {
		s, err = a.overrides.PutLocal(o, a.mayEnd(w, r, &refused))
	} else {
		s, err = a.overrides.PutIf(r.Context(), o, a.mayEnd(w, r, &refused))
	}
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return overrideProblem(err)
	}
	return serveJSON(w, statusOf(&s))
}

// removeOverride serves /v1/overrides/ID.
func (a *API) removeOverride(w http.ResponseWriter, r *http.Request) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	query, p := parameters(r, "author", "reason")
	if p != nil {
		return p
	}
	id := strings.TrimPrefix(r.URL.Path, overridesPath+"/")
	var refused *api.Problem
	err := a.overrides.RemoveIf(r.Context(), id, query.Get("author"), query.Get("reason"), a.mayEnd(w, r, &refused))
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return overrideProblem(err)
	}
	return serveJSON(w, struct{}{})
}

// mayEnd returns whether who asks may end an override that is there, which is also
// what replacing it does. Why not is put in refused.
func (a *API) mayEnd(w http.ResponseWriter, r *http.Request, refused **api.Problem) func(policy.Override) error {
	return func(before policy.Override) error {
		if *refused = a.permitOverride(w, r, before); *refused != nil {
			return errRole
		}
		return nil
	}
}

var errRole = errors.New("httpapi: it takes another role")

// permitOverride reports why a caller may not make or end an override; nil if it may. The
// role operate is enough for an override that names its clients. Any other override may
// reach everybody, and takes the role configure. So does one that does not fit the policy.
func (a *API) permitOverride(w http.ResponseWriter, r *http.Request, o policy.Override) *api.Problem {
	if o.Action.Kind().Suspends || a.roleOf(r) >= Configure {
		return a.permit(w, r, Configure)
	}
	if names, err := a.lim.Policy().NamesClients(o); err == nil && names {
		return a.permit(w, r, Operate)
	}
	p := a.permit(w, r, Configure)
	p.Detail += "; " + namesNobody
	return p
}

// namesNobody tells a caller which overrides take the role operate.
const namesNobody = "an override takes the role operate where it names clients: the key of a bucket that not all share, or a match with " +
	"values of ip:address, jwt:sub or a limit key, without \"not\" and *, and with networks that are together no wider than a /16, or a /32 of IPv6"

// parameters reads a query, each of whose parameters is known and given once.
func parameters(r *http.Request, known ...string) (url.Values, *api.Problem) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, api.NewProblem(http.StatusBadRequest, "the query of the URL is not understood; escape what is special in it")
	}
	for name, values := range query {
		ok := false
		for _, k := range known {
			ok = ok || k == name
		}
		switch {
		case !ok:
			return nil, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("parameter %.40q is unknown here; remove it", name))
		case len(values) > 1:
			return nil, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("parameter %.40q is given twice; remove one", name))
		}
	}
	return query, nil
}

// overrideProblem says why an override was not made or not removed.
func overrideProblem(err error) *api.Problem {
	mistakes, wrong := errors.AsType[policy.Errors](err)
	switch {
	case wrong:
		p := api.NewProblem(http.StatusUnprocessableEntity, "the override has a mistake; nothing was changed")
		if len(mistakes) > 1 {
			p.Detail = fmt.Sprintf("the override has %d mistakes; nothing was changed", len(mistakes))
		}
		p.Mistakes = mistakesOf(mistakes)
		return p
	case errors.Is(err, overrides.ErrNotFound):
		return api.NewProblem(http.StatusNotFound, "there is no such override; see the list")
	case errors.Is(err, overrides.ErrInFile):
		return api.NewProblem(http.StatusConflict, "the override is in the policy file; remove it there")
	case errors.Is(err, overrides.ErrFull):
		return api.NewProblem(http.StatusConflict, "there is no room for more overrides; remove those that are not needed")
	case errors.Is(err, store.ErrRevision):
		return api.NewProblem(http.StatusConflict, "others change overrides at this moment; nothing was changed, try again")
	}
	return api.NewProblem(http.StatusServiceUnavailable, "the store did not answer, and the change may have been made or not; see the list before trying again")
}

func serveJSON(w http.ResponseWriter, answer any) *api.Problem {
	text, err := json.Marshal(answer)
	if err != nil {
		return api.NewProblem(http.StatusInternalServerError, "the answer cannot be written as JSON")
	}
	buf := buffer{out: text}
	buf.serve(w, http.StatusOK)
	return nil
}
