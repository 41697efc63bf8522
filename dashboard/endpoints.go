// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// An endpoint serves data to a viewer who may look. An error that is a problem is
// answered as it is, and it must come before anything is written.
type endpoint struct {
	method string
	serve  func(h *Handler, w http.ResponseWriter, r *http.Request, v Viewer) error
}

// endpoints are by their path behind data/.
var endpoints = map[string]endpoint{
	"me":      {http.MethodGet, (*Handler).serveMe},
	"stream":  {http.MethodGet, (*Handler).serveStream},
	"watch":   {http.MethodGet, (*Handler).serveWatch},
	"traffic": {http.MethodGet, (*Handler).serveTraffic},
	"play":    {http.MethodPost, (*Handler).servePlay},
	"presets": {http.MethodGet, (*Handler).servePresets},

	"rules":   {http.MethodGet, (*Handler).serveRules},
	"request": {http.MethodPost, (*Handler).serveRequest},

	"violations":           {http.MethodGet, (*Handler).serveViolations},
	"violations.csv":       {http.MethodGet, (*Handler).serveViolationsCSV},
	"violations/histogram": {http.MethodGet, (*Handler).serveViolationHistogram},
}

// Me says who looks, and at what, as the page is told.
type Me struct {
	Name     string    `json:"name"`
	Role     string    `json:"role"`
	SeeKeys  bool      `json:"see_keys"`
	SignIn   string    `json:"sign_in"`
	Try      []string  `json:"try,omitempty"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Instance string    `json:"instance"`
	API      string    `json:"api"`
	Features Features  `json:"features"`

	// Actions are those of overrides, with the words for them.
	Actions []policy.ActionKind `json:"actions"`

	// Algorithms are those of policy files, and Reasons those of denials.
	Algorithms []policy.AlgorithmKind `json:"algorithms"`
	Reasons    []string               `json:"reasons"`
}

// Features are the parts of the page that not every server has.
type Features struct {
	Top        bool `json:"top"`
	Overrides  bool `json:"overrides"`
	Violations bool `json:"violations"`
}

func (h *Handler) serveMe(w http.ResponseWriter, _ *http.Request, v Viewer) error {
	state := h.config.Source.State()
	return answerJSON(w, Me{
		Name: v.Name, Role: v.Role, SeeKeys: v.SeeKeys, SignIn: h.config.SignIn, Try: h.config.Try,
		Version: state.Version, Started: state.Started, Instance: state.Instance, API: h.config.API,
		Features: Features{h.config.Top, h.config.Overrides, h.config.Violations != nil}, Actions: policy.Actions(),
		Algorithms: policy.Algorithms(), Reasons: reasons(),
	})
}

// reasons are the reasons of denials, those of limits first.
func reasons() (all []string) {
	for _, a := range policy.Algorithms() {
		all = append(all, a.Reason)
	}
	return append(all, mete.ReasonMissingAttribute, mete.ReasonBlocked)
}
