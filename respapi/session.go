// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"bytes"
	"fmt"
	"strings"
)

const defaultUser = "default"

// is reports whether word is the name of an option or a subcommand, in any case.
func is(word []byte, name string) bool {
	return len(word) == len(name) && bytes.EqualFold(word, []byte(name))
}

func ping(c *client, args [][]byte) {
	switch len(args) {
	case 1:
		c.busy.status("PONG")
	case 2:
		c.busy.bulkBytes(args[1])
	default:
		c.busy.wrongNumber("ping")
	}
}

func echo(c *client, args [][]byte) { c.busy.bulkBytes(args[1]) }

func quit(c *client, _ [][]byte) {
	c.busy.status("OK")
	c.quit = true
}

func resetConnection(c *client, _ [][]byte) {
	c.setProtocol(2)
	c.name, c.library = "", [2]string{}
	c.logOut()
	c.busy.status("RESET")
}

func selectDatabase(c *client, args [][]byte) {
	n, ok := parseInt(args[1])
	switch {
	case !ok:
		c.busy.fail("ERR value is not an integer or out of range")
	case n != 0:
		c.busy.fail("ERR DB index is out of range")
	default:
		c.busy.status("OK")
	}
}

func (c *client) setProtocol(version int64) {
	c.resp3 = version == 3
	c.busy.resp3 = c.resp3
}

// auth executes AUTH password, and AUTH user password.
func auth(c *client, args [][]byte) {
	var err string
	switch len(args) {
	case 2:
		if c.server.config.Authenticate == nil {
			err = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
			break
		}
		err = c.logIn(defaultUser, string(args[1]))
	case 3:
		err = c.logIn(string(args[1]), string(args[2]))
	default:
		err = "ERR syntax error"
	}
	if err != "" {
		c.busy.fail(err)
		return
	}
	c.busy.status("OK")
}

// logIn authenticates the client and returns an error's text. A failure leaves the rights as they are.
func (c *client) logIn(user, password string) string {
	role, ok := c.server.config.Anonymous, user == defaultUser // as in a Redis without passwords
	if check := c.server.config.Authenticate; check != nil {
		role, ok = check(c.server.ctx, Login{user, password, c.nc.RemoteAddr().String()})
	}
	if !ok {
		return "WRONGPASS invalid username-password pair or user is disabled."
	}
	c.admitted, c.role, c.user = true, role, user
	return ""
}

// The error of Redis for HELLO without authentication.
const (
	helloNeeds   = "NOAUTH HELLO must be called with the client already authenticated, "
	helloOption  = "otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client "
	helloPurpose = "and select the RESP protocol version at the same time"
)

// hello executes HELLO [version [AUTH user password] [SETNAME name]].
func hello(c *client, args [][]byte) {
	b := c.busy
	version := int64(2)
	if c.resp3 {
		version = 3
	}
	if len(args) > 1 {
		n, ok := parseInt(args[1])
		switch {
		case !ok:
			b.fail("ERR Protocol version is not an integer or out of range")
			return
		case n != 2 && n != 3:
			b.fail("NOPROTO unsupported protocol version")
			return
		}
		version = n
	}
	var user, password []byte
	name, named := "", false
	for rest := args[min(len(args), 2):]; len(rest) > 0; {
		switch {
		case is(rest[0], "auth") && len(rest) >= 3:
			user, password, rest = rest[1], rest[2], rest[3:]
		case is(rest[0], "setname") && len(rest) >= 2:
			name, named, rest = string(rest[1]), true, rest[2:]
		default:
			b.fail(fmt.Sprintf("ERR Syntax error in HELLO option '%.128s'", rest[0]))
			return
		}
	}
	if named && !isName(name) {
		b.fail("ERR Client names cannot contain spaces, newlines or special characters.")
		return
	}
	if user != nil {
		if err := c.logIn(string(user), string(password)); err != "" {
			b.fail(err)
			return
		}
	}
	if !c.admitted {
		b.fail(helloNeeds + helloOption + helloPurpose)
		return
	}
	if named {
		c.name = name
	}
	c.setProtocol(version)
	b.mapping(7)
	b.bulk("server")
	b.bulk("redis")
	b.bulk("version")
	b.bulk(redisVersion)
	b.bulk("proto")
	b.integer(version)
	b.bulk("id")
	b.integer(int64(c.id))
	b.bulk("mode")
	b.bulk("standalone")
	b.bulk("role")
	b.bulk("master")
	b.bulk("modules")
	b.array(0)
}

// maxSessionNameBytes bounds the names that a client gives itself.
const maxSessionNameBytes = 256

// isName reports whether text can be a name in a line of CLIENT INFO.
func isName(text string) bool {
	return len(text) <= maxSessionNameBytes && !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// connection executes CLIENT.
func connection(c *client, args [][]byte) {
	b, word, rest := c.busy, args[1], args[2:]
	arity := func(n int, name string) bool {
		if len(rest) != n {
			b.wrongNumber("client|" + name)
		}
		return len(rest) == n
	}
	switch {
	case is(word, "id"):
		if arity(0, "id") {
			b.integer(int64(c.id))
		}
	case is(word, "info"):
		if arity(0, "info") {
			b.bulk(c.describe())
		}
	case is(word, "getname"):
		if !arity(0, "getname") {
			return
		}
		if c.name == "" {
			b.null()
			return
		}
		b.bulk(c.name)
	case is(word, "setname"):
		if !arity(1, "setname") {
			return
		}
		if !isName(string(rest[0])) {
			b.fail("ERR Client names cannot contain spaces, newlines or special characters.")
			return
		}
		c.name = string(rest[0])
		b.status("OK")
	case is(word, "setinfo"):
		if arity(2, "setinfo") {
			c.setInfo(rest[0], string(rest[1]))
		}
	case is(word, "no-evict") || is(word, "no-touch"):
		if !arity(1, strings.ToLower(string(word))) {
			return
		}
		if !is(rest[0], "on") && !is(rest[0], "off") {
			b.fail("ERR syntax error")
			return
		}
		b.status("OK")
	default: // TRACKING: clients then do without a cache
		b.unknownSubcommand("CLIENT", word)
	}
}

func (c *client) setInfo(option []byte, value string) {
	at := 0
	switch {
	case is(option, "lib-name"):
	case is(option, "lib-ver"):
		at = 1
	default:
		c.busy.fail(fmt.Sprintf("ERR Unrecognized option '%.128s'", option))
		return
	}
	if !isName(value) {
		c.busy.fail(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", bytes.ToLower(option)))
		return
	}
	c.library[at] = value
	c.busy.status("OK")
}

func (c *client) describe() string {
	version := 2
	if c.resp3 {
		version = 3
	}
	return fmt.Sprintf("id=%d addr=%v laddr=%v name=%s db=0 resp=%d user=%s lib-name=%s lib-ver=%s\n",
		c.id, c.nc.RemoteAddr(), c.nc.LocalAddr(), c.name, version, c.shownUser(), c.library[0], c.library[1])
}

func (c *client) shownUser() string {
	if c.user == "" {
		return defaultUser
	}
	return c.user
}
