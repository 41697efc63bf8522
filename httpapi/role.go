// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/metehq/mete/api"
)

// A Role is what a caller may do. Each includes those below it. The zero Role may
// ask /livez and /readyz, and /v1/decision, which has a check of its own.
type Role int

// The roles.
const (
	NoRole    Role = iota
	Read           // look: peek, explain, the list of overrides
	Operate        // and change buckets: take, refund, reset; overrides that block, allow or limit clients that they name
	Configure      // and what holds for all: any override, reload
)

// roleNames are the roles as they are written.
var roleNames = [...]string{"none", "read", "operate", "configure"}

// ParseRole reads a role that somebody can be given: read, operate or configure.
func ParseRole(text string) (Role, error) {
	for i, name := range roleNames {
		if text == name && Role(i) != NoRole {
			return Role(i), nil
		}
	}
	return NoRole, fmt.Errorf("httpapi: role %q: must be %s", text, strings.Join(roleNames[Read:], ", "))
}

// String returns the role as [ParseRole] reads it, and "none" for the zero Role.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return roleNames[r]
}

// roleOf is the role of who asks.
func (a *API) roleOf(r *http.Request) Role {
	if a.role == nil {
		return Configure
	}
	return a.role(r)
}

// permit reports why who asks may not do what takes a role; nil for nothing.
func (a *API) permit(w http.ResponseWriter, r *http.Request, need Role) *api.Problem {
	switch have := a.roleOf(r); {
	case have >= need:
		return nil
	case have == NoRole || r.Header["Authorization"] == nil:
		w.Header()["Www-Authenticate"] = []string{`Bearer realm="mete"`} // RFC 6750 §3
		detail := fmt.Sprintf("this takes a token of the role %s; send it as Authorization: Bearer TOKEN", need)
		if a.live.SignIn != "" {
			detail += ". " + a.live.SignIn
		}
		return api.NewProblem(http.StatusUnauthorized, detail)
	default:
		return api.NewProblem(http.StatusForbidden, fmt.Sprintf("this takes the role %s, and the token has the role %s", need, have))
	}
}
