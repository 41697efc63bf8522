// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const maxCORSOrigins = 256

// anyOrigin allows every origin. It must be the only entry of the list.
const anyOrigin = "*"

// exposedFields are the fields of a denial that scripts from other origins may read.
var exposedFields = []string{"Retry-After, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
	"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Reason"}

// CheckCORSOrigins validates [Config.CORSOrigins]. It is for programs that validate settings.
func CheckCORSOrigins(origins []string) error {
	if len(origins) > maxCORSOrigins {
		return fmt.Errorf("%d CORS origins: at most %d are allowed", len(origins), maxCORSOrigins)
	}
	var errs []error
	for i, origin := range origins {
		switch u, err := url.Parse(origin); {
		case origin == anyOrigin && len(origins) > 1:
			errs = append(errs, errors.New(`CORS origin "*" allows every origin: remove the others`))
		case origin == anyOrigin:
		case err != nil || u.Scheme == "" || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host), strings.Contains(u.Host, "*"):
			errs = append(errs, fmt.Errorf(`CORS origin %q: write scheme and host in lower case, with the port if it is not the default, as in "https://app.example.com"`, origin))
		case slices.Contains(origins[:i], origin):
			errs = append(errs, fmt.Errorf("duplicate CORS origin %q", origin))
		}
	}
	return errors.Join(errs...)
}

// shareDenial sets the CORS fields of a denial, unless a handler in front has set Access-Control-Allow-Origin.
func (m *Middleware) shareDenial(h http.Header, r *http.Request) {
	if len(m.corsOrigins) == 0 || len(h["Access-Control-Allow-Origin"]) > 0 {
		return
	}
	if m.corsOrigins[0] == anyOrigin {
		h["Access-Control-Allow-Origin"], h["Access-Control-Expose-Headers"] = m.corsOrigins, exposedFields
		return
	}
	h.Add("Vary", "Origin")
	origin := r.Header["Origin"]
	if len(origin) != 1 || !slices.Contains(m.corsOrigins, origin[0]) {
		return
	}
	h["Access-Control-Allow-Origin"], h["Access-Control-Expose-Headers"] = []string{origin[0]}, exposedFields
	h["Access-Control-Allow-Credentials"] = []string{"true"}
}
