// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const (
	ruleResetPath = "/v1/rules/reset"

	// ruleResetTime bounds one request that resets a rule. The response contains the position for the next
	// request, so resetting a large store needs no long timeouts.
	ruleResetTime = 2 * time.Second

	// maxFromBytes bounds the position at which a reset continues: a key in hexadecimal digits.
	maxFromBytes = 4 << 10
)

func (a *API) resetRule(w http.ResponseWriter, r *http.Request, action *audit.Action) *api.Problem {
	q, p := a.ruleRequest(w, r)
	if p != nil {
		return p
	}
	action.SetRule(q.Rule, q.Reason)
	answer := api.RuleReset{Next: q.From}
	for begin := time.Now(); ; {
		cleared, next, err := a.lim.ResetRule(r.Context(), q.Rule, answer.Next)
		answer.Cleared += cleared
		if err != nil {
			if answer.Cleared > 0 {
				action.RecordRuleReset(answer.Cleared)
			}
			return ruleProblem(err)
		}
		if answer.Next = next; next == "" || time.Since(begin) >= ruleResetTime {
			break
		}
	}
	// Other servers deny from their caches until they read this.
	action.RecordRuleReset(answer.Cleared)
	return serveJSON(w, answer)
}

func (a *API) ruleRequest(w http.ResponseWriter, r *http.Request) (q api.RuleChange, p *api.Problem) {
	if p := a.checkSender(w, r); p != nil {
		return q, p
	}
	if _, p := parseQuery(r); p != nil {
		return q, p
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return q, p
	}
	d := &buf.decoder
	if p := d.open(buf.in); p != nil {
		return q, p
	}
	for name := range d.members([]string{"rule", "reason", "from"}) {
		switch name {
		case "rule":
			if q.Rule = d.wantString("the rule is not a string; use its name in the policy"); len(q.Rule) > policy.MaxNameBytes {
				d.fail("the rule name is too long; use the name in the policy")
			}
		case "reason":
			q.Reason = d.reason()
		case "from":
			if q.From = d.wantString("from is not a string; send next of the previous response"); len(q.From) > maxFromBytes {
				d.fail("from is too long; send next of the previous response")
			}
		}
	}
	switch p := d.close(); {
	case p != nil:
		return q, p
	case q.Rule == "":
		return q, memberProblem("/rule", "the rule is missing; use its name in the policy")
	case q.Reason == "":
		return q, memberProblem("/reason", "the reason is missing; give one in \"reason\" for the audit log")
	}
	return q, nil
}

func ruleProblem(err error) *api.Problem {
	var unknown *policy.RuleError
	switch {
	case errors.As(err, &unknown):
		detail := fmt.Sprintf("the policy has no rule %q", unknown.Name)
		if unknown.Near != "" {
			detail += "; did you mean " + unknown.Near + "?"
		}
		return api.NewProblem(http.StatusNotFound, detail)
	case errors.Is(err, store.ErrFrom):
		return memberProblem("/from", "from is not the next of an earlier response; leave it out to start over")
	case errors.Is(err, errors.ErrUnsupported):
		return api.NewProblem(http.StatusNotFound, "the store cannot reset whole rules; reset buckets by their keys")
	}
	return api.NewProblem(http.StatusServiceUnavailable, "the store did not respond, and some buckets may be full now; start the reset again, which is safe")
}
