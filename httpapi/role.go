// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/metehq/mete/api"
)

// A Role is a set of permissions of a caller. Each role includes the lower ones. The zero Role may only use
// /livez and /readyz, and /v1/decision, which has its own check.
type Role int

// The roles.
const (
	RoleNone      Role = iota
	RoleRead           // peek, explain, list overrides
	RoleOperate        // take, hold, settle, refund, reset, and change overrides for named clients
	RoleConfigure      // change any override, reload the policy
)

var roleNames = [...]string{"none", "read", "operate", "configure"}

// ParseRole parses a role that can be assigned: read, operate or configure.
func ParseRole(text string) (Role, error) {
	for i, name := range roleNames {
		if text == name && Role(i) != RoleNone {
			return Role(i), nil
		}
	}
	return RoleNone, fmt.Errorf("httpapi: role %q: must be %s", text, strings.Join(roleNames[RoleRead:], ", "))
}

// String returns the role in the form that [ParseRole] accepts, and "none" for the zero Role.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return roleNames[r]
}

func (a *API) roleOf(r *http.Request) Role {
	if a.role == nil {
		return RoleConfigure
	}
	return a.role(r)
}

func (a *API) checkRole(w http.ResponseWriter, r *http.Request, need Role) *api.Problem {
	switch have := a.roleOf(r); {
	case have >= need:
		return nil
	case have == RoleNone || r.Header["Authorization"] == nil:
		w.Header()["Www-Authenticate"] = []string{`Bearer realm="mete"`} // RFC 6750 §3
		detail := fmt.Sprintf("a token with the role %s is required; send it as Authorization: Bearer TOKEN", need)
		if a.live.SignIn != "" {
			detail += ". " + a.live.SignIn
		}
		return api.NewProblem(http.StatusUnauthorized, detail)
	default:
		return api.NewProblem(http.StatusForbidden, fmt.Sprintf("the role %s is required, but the token has the role %s", need, have))
	}
}
