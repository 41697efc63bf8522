// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/forwardauth"
)

// A Profile identifies the gateway that calls /v1/decision and selects the headers that describe the client's
// request. The API reads no other headers, because a client can send them. With ProfileEnvoy, the method and Host of
// the call and the path after /v1/decision describe the request, as Envoy sends them with that path_prefix.
type Profile string

// The profiles. The empty Profile disables the endpoint.
//
// X-Original stands for X-Original-Method, X-Original-URI and X-Original-Host, and X-Forwarded for
// X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host.
const (
	ProfileNGINX    Profile = "nginx"     // X-Original, and 403 instead of 400, 429 and 503: auth_request
	ProfileNGINXLua Profile = "nginx-lua" // X-Original
	ProfileHAProxy  Profile = "haproxy"   // X-Original
	ProfileCaddy    Profile = "caddy"     // X-Forwarded
	ProfileTraefik  Profile = "traefik"   // X-Forwarded
	ProfileEnvoy    Profile = "envoy"     // the request itself, with its path after /v1/decision: ext_authz over HTTP
)

// Profiles returns all profiles in the order of the documentation.
func Profiles() []Profile {
	return []Profile{ProfileNGINX, ProfileNGINXLua, ProfileHAProxy, ProfileCaddy, ProfileTraefik, ProfileEnvoy}
}

type profile struct {
	method, uri, host string

	// onlyForbidden is for a gateway that turns every denial except 403 into a 500.
	onlyForbidden bool

	// belowPath is for a gateway that appends the client's target to [decisionPath].
	belowPath bool
}

func (p Profile) headers() (profile, error) {
	switch p {
	case ProfileNGINX, ProfileNGINXLua, ProfileHAProxy:
		return profile{"X-Original-Method", "X-Original-Uri", "X-Original-Host", p == ProfileNGINX, false}, nil
	case ProfileCaddy, ProfileTraefik:
		return profile{"X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", false, false}, nil
	case ProfileEnvoy:
		return profile{belowPath: true}, nil
	}
	return profile{}, fmt.Errorf("gateway: unknown profile %q: known are nginx, nginx-lua, haproxy, caddy, traefik and envoy", string(p))
}

// originalRequest returns the client's request as the gateway describes it. The other headers are the client's own.
func (p profile) originalRequest(r *http.Request) (*http.Request, *api.Problem) {
	if p.belowPath {
		return requestBelow(r)
	}
	var values [3]string
	for i, name := range [...]string{p.method, p.uri, p.host} {
		// Two lines could be the gateway's and the client's, in unknown order.
		sent := r.Header[name]
		if len(sent) != 1 || sent[0] == "" {
			return nil, api.NewProblem(http.StatusBadRequest,
				fmt.Sprintf("the header %s must occur exactly once; configure the gateway to set it", name))
		}
		values[i] = sent[0]
	}
	target, err := forwardauth.ParseTarget(values[1])
	if err != nil {
		return nil, api.NewProblem(http.StatusBadRequest,
			fmt.Sprintf("the header %s is not a request target such as /path?query; configure the gateway to send the client's target", p.uri))
	}
	original := r.WithContext(r.Context()) // a shallow copy
	original.Method, original.URL, original.Host = values[0], target, values[2]
	return original, nil
}

// requestBelow returns the client's request that r describes with the path after [decisionPath]. It reads the path
// as it was sent, because a decoded path could be another one.
func requestBelow(r *http.Request) (*http.Request, *api.Problem) {
	target, below := strings.CutPrefix(r.RequestURI, decisionPath)
	if !below || target == "" {
		return nil, api.NewProblem(http.StatusBadRequest,
			"the path of the client's request must follow "+decisionPath+"; configure Envoy with path_prefix: "+decisionPath)
	}
	u, err := forwardauth.ParseTarget(target)
	if err != nil {
		return nil, api.NewProblem(http.StatusBadRequest, "the part of the path after "+decisionPath+" is not a request target such as /path?query")
	}
	original := r.WithContext(r.Context()) // a shallow copy
	original.URL = u
	return original, nil
}
