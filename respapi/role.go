// SPDX-License-Identifier: Apache-2.0

package respapi

// A Role is a set of permissions of a client. Each role includes the lower ones. The numbers differ from those of
// httpapi.Role, which has no RoleTake.
type Role int

// The roles.
const (
	RoleNone    Role = iota // PING, ECHO, INFO and other commands about the connection
	RoleRead                // METE.PEEK
	RoleTake                // CL.THROTTLE, METE.TAKE, METE.HOLD, METE.SETTLE, METE.RELEASE and METE.RENEW
	RoleOperate             // METE.REFUND and METE.RESET
)

var roleNames = [...]string{"none", "read", "take", "operate"}

// String returns "none", "read", "take" or "operate". Higher roles are "operate", because no command requires them.
func (r Role) String() string { return roleNames[min(max(r, 0), RoleOperate)] }
