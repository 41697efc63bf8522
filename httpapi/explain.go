// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// explain serves /v1/explain. A denial also gets a 200, because the explanation succeeded.
func (a *API) explain(w http.ResponseWriter, r *http.Request) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return p
	}
	reqs, batch, p := buf.decoder.decode(buf.in, a.maxWait)
	switch {
	case p != nil:
		return p
	case batch:
		p := api.NewProblem(http.StatusBadRequest, "explain accepts one request; send it without \"requests\"")
		p.Pointer = "/requests"
		return p
	}
	e, err := a.lim.Explain(r.Context(), reqs[0])
	if err != nil {
		return errorProblem(err)
	}
	x := ExplanationOf(&e)
	x.Decision.UnknownAttributes = a.unknownAttributes(&reqs[0])
	if a.roleOf(r) < RoleOperate {
		maskExplanation(&x)
	}
	return serveJSON(w, x)
}

// ExplanationOf converts e to the response of /v1/explain. It omits limits that the request itself contains.
func ExplanationOf(e *mete.Explanation) api.Explanation {
	x := api.Explanation{
		At: e.At.Time(), Why: describeDecision(e), Decision: decisionOf(&e.Decision, []api.Limit{}), Override: overrideOf(e.Decision.Override), ShadowedBy: overrideOf(e.ShadowOverride), Rules: []api.ExplainedRule{},
		PassesAt: passesAt(e.At, &e.Decision),
	}
	if e.Policy != nil {
		x.PolicyVersion = e.Policy.Version()
		if p := e.Policy.Prices(); p != nil {
			x.PriceVersion, x.PriceDate = p.Version(), p.Date()
		}
	}
	for i := range e.Rules {
		x.Rules = append(x.Rules, explainRule(e, &e.Rules[i]))
	}
	return x
}

// passesAt returns when a request passes, or nil if it never does or if the store failed.
func passesAt(at bucket.Instant, d *mete.Decision) *time.Time {
	if d.Reason == mete.ReasonStoreError {
		return nil
	}
	return timeAfter(at, d.RetryAfter)
}

func explainRule(e *mete.Explanation, r *mete.RuleResult) api.ExplainedRule {
	x := api.ExplainedRule{
		Name: r.Rule.Name, Mode: r.Rule.Mode.String(), LimitKeys: []string{}, Outcome: r.Outcome.String(), Why: describeRule(e, r), Shadow: r.Shadow,
		Attribute: r.Attribute.String(), Condition: r.Wants, Override: overrideOf(r.Override), Limits: []api.ExplainedLimit{},
	}
	for _, a := range r.Rule.LimitKeys {
		x.LimitKeys = append(x.LimitKeys, a.Spelling())
	}
	if r.Present {
		x.Has = &r.Value
	}
	if r.By != nil {
		x.By = r.By.Name
	}
	x.Facts = appendNotable(nil, "", r.Rule.Facts())
	for i := range r.Rule.Limits {
		l, of := &r.Rule.Limits[i], ""
		if len(r.Rule.Limits) > 1 {
			of = " of " + l.Name
		}
		x.Facts = appendNotable(x.Facts, of, l.Facts())
	}
	for i := range r.Accounts {
		x.Limits = append(x.Limits, explainLimit(e, &r.Accounts[i]))
	}
	return x
}

func appendNotable(list []api.Fact, of string, facts []policy.Fact) []api.Fact {
	for _, f := range facts {
		if f.Notable {
			list = append(list, api.Fact{Field: f.Field, Label: f.Label + of, Value: f.Value, Notable: true})
		}
	}
	return list
}

func explainLimit(e *mete.Explanation, a *mete.Account) api.ExplainedLimit {
	x := api.ExplainedLimit{
		Name: a.Limit.Name, Key: a.Key, Algorithm: prose.Algorithm(a.Limit), Cost: api.Amount(a.Cost), Capacity: api.Amount(maxTokens(&a.Status)), Asked: a.Asked,
	}
	if !a.Asked {
		return x
	}
	x.Allowed, x.RetryAfter, x.FullAfter = a.Allowed, api.Seconds(a.RetryAfter), api.Seconds(a.FullAfter())
	x.Penalty = api.PenaltyOf(a.Penalty())
	x.Before, x.After = levelOf(&a.Before), levelOf(&a.Snapshot)
	x.PassesAt = timeAfter(e.At, a.RetryAfter)
	if stage := a.Stage(); stage != nil && e.Decision.Allowed {
		x.Stage, x.Delay = stage.Share, api.Seconds(stage.Delay)
	}
	return x
}
