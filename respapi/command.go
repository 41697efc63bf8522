// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A command is an entry of the table of commands.
type command struct {
	name    string
	arity   int // number of words; -2 is at least two. As in Redis, it includes the name.
	role    Role
	before  bool // allowed before authentication
	key     int  // position of the bucket key, or 0
	summary string
	run     func(c *client, args [][]byte)
}

// commands are the commands by their names in lower case.
var commands map[string]*command

func init() {
	commands = map[string]*command{}
	for _, one := range []command{
		{"auth", -2, RoleNone, true, 0, "Authenticate the connection.", auth},
		{"cl.throttle", -1, RoleTake, false, 1, "Take tokens from the bucket of a key, with the limit in the command.", throttle},
		{"client", -2, RoleNone, false, 0, "Describe the connection.", connection},
		{"command", -1, RoleNone, false, 0, "List the commands.", list},
		{"config", -2, RoleNone, false, 0, "Answer the settings that redis-benchmark asks for.", config},
		{"echo", 2, RoleNone, false, 0, "Return the argument.", echo},
		{"hello", -1, RoleNone, true, 0, "Choose the version of the protocol.", hello},
		{"info", -1, RoleNone, false, 0, "Describe the server.", info},
		{"mete.hold", -2, RoleTake, false, 0, "Take an estimate by the policy, and settle it later.", hold},
		{"mete.peek", -1, RoleRead, false, 0, "Decide a request by the policy without taking tokens.", peek},
		{"mete.refund", -1, RoleOperate, false, 0, "Return the tokens of a request.", refund},
		{"mete.release", 3, RoleTake, false, 0, "Settle a hold with 0.", release},
		{"mete.renew", 4, RoleTake, false, 0, "Make a hold expire later.", renew},
		{"mete.reset", -1, RoleOperate, false, 0, "Refill the buckets of a request.", reset},
		{"mete.settle", -3, RoleTake, false, 0, "Replace the estimate of a hold by the actual cost.", settle},
		{"mete.take", -1, RoleTake, false, 0, "Decide a request by the policy, and take its tokens.", take},
		{"ping", -1, RoleNone, false, 0, "Answer with PONG.", ping},
		{"quit", -1, RoleNone, true, 0, "Close the connection.", quit},
		{"reset", 1, RoleNone, true, 0, "Return the connection to its first state.", resetConnection},
		{"rl.throttle", -1, RoleTake, false, 1, "Same as CL.THROTTLE.", throttle},
		{"select", 2, RoleNone, false, 0, "Select database 0.", selectDatabase},
	} {
		commands[one.name] = &one
	}
}

func sortedCommands() []*command {
	return slices.SortedFunc(maps.Values(commands), func(a, b *command) int { return strings.Compare(a.name, b.name) })
}

const maxNameBytes = 32

// findCommand returns the command with a name in any case, or nil.
func findCommand(name []byte) *command {
	var room [maxNameBytes]byte
	if len(name) > len(room) {
		return nil
	}
	return commands[string(appendLower(room[:0], name))]
}

func appendLower(dst, text []byte) []byte {
	for _, b := range text {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		dst = append(dst, b)
	}
	return dst
}

// execute executes one command and appends its reply. The checks and their texts have the order of Redis.
func (c *client) execute(args [][]byte) {
	b, cmd := c.busy, findCommand(args[0])
	switch {
	case cmd == nil && isHTTP(args[0]):
		c.quit = true // a browser may send such requests for another site
	case cmd == nil:
		b.fail(unknownCommand(args))
	case cmd.arity > 0 && len(args) != cmd.arity || len(args) < -cmd.arity:
		b.wrongNumber(cmd.name)
	case !c.admitted && !cmd.before:
		b.fail("NOAUTH Authentication required.")
	case c.role < cmd.role:
		b.fail(fmt.Sprintf("NOPERM User %s has no permissions to run the '%s' command; it requires the role %v", c.shownUser(), cmd.name, cmd.role))
	default:
		cmd.run(c, args)
	}
}

// isHTTP reports whether a line is part of an HTTP request. Redis closes the connection at these two words.
func isHTTP(word []byte) bool {
	return strings.EqualFold(string(word), "post") || strings.EqualFold(string(word), "host:")
}

// unknownCommand returns the error of Redis, which clients match.
func unknownCommand(args [][]byte) string {
	const most = 128 // bytes of arguments
	text := fmt.Appendf(nil, "ERR unknown command '%.*s', with args beginning with: ", most, args[0])
	from := len(text)
	for _, arg := range args[1:] {
		if len(text)-from >= most {
			break
		}
		text = fmt.Appendf(text, "'%.*s' ", most-(len(text)-from), arg)
	}
	return string(text)
}

func (r *reply) wrongNumber(name string) {
	r.fail("ERR wrong number of arguments for '" + name + "' command")
}

func (r *reply) unknownSubcommand(command string, word []byte) {
	r.fail(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try %s HELP.", word, command))
}
