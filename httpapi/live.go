// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"maps"
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/sse"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
)

const (
	trafficPath = "/v1/traffic"
	streamPath  = "/v1/traffic/stream"
)

// Live holds the optional sources of the endpoints that show a limiter at work. Package dashboard uses them.
type Live struct {
	// Monitor enables /v1/traffic and its stream, which otherwise return 404.
	Monitor *monitor.Monitor

	// Watches passes the decisions about a bucket to /v1/watch. If nil, /v1/watch shows only levels.
	Watches *monitor.Watches

	// AI enables /v1/ai, which otherwise returns 404.
	AI *aiusage.Counts

	// Violations enables /v1/violations, which otherwise returns 404.
	Violations Violations

	// Name returns the caller's name for /v1/me. It must be safe for concurrent use.
	Name func(*http.Request) string

	// SignIn tells callers without a token where to get one, in full sentences.
	SignIn string

	// Try lists commands that send requests to the limiter. A page shows them until there is traffic.
	Try []string

	// ReadCurl, if not nil, parses curl command lines for /v1/request. If nil, the endpoint accepts only HTTP
	// request text and attributes. It must be safe for concurrent use.
	ReadCurl func(command string) (CurlRequest, error)
}

// A CurlRequest is the request that a curl command line sends.
type CurlRequest struct {
	Request *http.Request // Method, RequestURI, Host and Header
	Assumed []string      // canonical names of headers that curl adds
	Notes   []string      // notes about ignored parts of the command
}

func (a *API) liveEndpoints() map[string]endpoint {
	if a.live.Watches == nil {
		a.live.Watches = new(monitor.Watches)
	}
	a.streams, a.plays, a.files = sse.NewStreams(MaxStreams), make(chan struct{}, playSlots()), make(chan struct{}, maxFiles)
	all := map[string]endpoint{}
	if a.live.Monitor != nil {
		all[trafficPath] = readEndpoint(a.serveTraffic)
		all[streamPath] = readEndpoint(a.serveTrafficStream)
	}
	if a.live.AI != nil {
		all[aiPath] = readEndpoint(a.serveAI)
	}
	maps.Copy(all, map[string]endpoint{
		"/v1/me":    readEndpoint(a.serveMe),
		"/v1/watch": readEndpoint(a.serveWatch),
		"/v1/rules": readEndpoint(a.serveRules),

		"/v1/violations":           readEndpoint(a.serveViolations),
		"/v1/violations.csv":       readEndpoint(a.serveViolationsCSV),
		"/v1/violations/histogram": readEndpoint(a.serveViolationHistogram),

		"/v1/play/presets": readEndpoint(a.servePresets),
		"/v1/play":         {method: http.MethodPost, role: RoleRead, serve: a.servePlay},
		"/v1/request":      {method: http.MethodPost, role: RoleRead, serve: a.serveRequest},
	})
	return all
}

// readEndpoint returns a GET endpoint that requires the role read.
func readEndpoint(serve func(http.ResponseWriter, *http.Request) *api.Problem) endpoint {
	return endpoint{method: http.MethodGet, role: RoleRead, serve: serve}
}

// Close ends all streams, which frees their connections. The API otherwise works as before.
func (a *API) Close() {
	if a.streams != nil {
		a.streams.Close()
	}
}

func (a *API) canSeeKeys(r *http.Request) bool { return a.roleOf(r) >= RoleOperate }

func (a *API) serveMe(w http.ResponseWriter, r *http.Request) *api.Problem {
	if _, p := parseQuery(r); p != nil {
		return p
	}
	me := api.Me{
		Role: a.roleOf(r).String(), SeeKeys: a.canSeeKeys(r), SignIn: a.live.SignIn, Try: a.live.Try,
		Features: api.Features{Top: a.top.Tracker != nil, Overrides: a.overrides != nil, Violations: a.live.Violations != nil, AI: a.live.AI != nil && a.live.AI.Policy().InUse()},
	}
	for _, k := range policy.Actions() {
		me.Actions = append(me.Actions, api.ActionKind{
			Action: string(k.Action), Some: k.Some, All: k.All, Rules: k.Rules, Key: k.Key, Limit: k.Limit, Suspends: k.Suspends,
			Label: k.Label, Choice: k.Choice, Verb: k.Verb, Count: k.Count, Made: k.Made, Effect: k.Effect, EffectAll: k.EffectAll,
			Notice: k.Notice, Color: k.Color,
		})
	}
	for _, k := range policy.Algorithms() {
		me.Algorithms = append(me.Algorithms, api.AlgorithmKind(k))
	}
	me.Reasons = append(policy.Reasons(), mete.ReasonMissingAttribute, mete.ReasonBlocked)
	if a.live.Name != nil {
		me.Name = a.live.Name(r)
	}
	if a.live.Monitor != nil {
		state := a.live.Monitor.State()
		me.Version, me.Started, me.Instance = state.Version, state.Started, state.Instance
	}
	return serveJSON(w, me)
}
