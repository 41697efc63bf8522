// SPDX-License-Identifier: Apache-2.0

package respapi

// A Role is a set of permissions of a client. Each role includes the lower ones. The numbers equal the ones of
// httpapi.Role, so that a program can convert one to the other.
type Role int

// The roles.
const (
	RoleNone    Role = iota // PING, ECHO, INFO and other commands about the connection
	RoleRead                // METE.PEEK
	RoleOperate             // CL.THROTTLE, METE.TAKE, METE.REFUND and METE.RESET
)

var roleNames = [...]string{"none", "read", "operate"}

// String returns "none", "read" or "operate". Higher roles are "operate", because no command requires them.
func (r Role) String() string { return roleNames[min(max(r, 0), RoleOperate)] }
