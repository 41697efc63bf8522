// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// The defaults of [Config].
const (
	DefaultMaxClients       = 10_000
	DefaultHandshakeTimeout = 10 * time.Second
	DefaultWriteTimeout     = 10 * time.Second
	DefaultMaxWait          = time.Hour
)

// Config holds the optional settings of a [Server].
type Config struct {
	// Authenticate, if not nil, returns the role of a client that sends AUTH or HELLO with credentials, and whether
	// they are valid. It must be safe for concurrent use, compare passwords in constant time, and limit wrong
	// passwords by address. If nil, AUTH with a password alone is an error, as in a Redis without passwords.
	Authenticate func(ctx context.Context, login Login) (Role, bool)

	// Anonymous is the role of clients that have not authenticated. With RoleNone they may only send AUTH, HELLO,
	// QUIT and RESET. If Authenticate is nil, RoleNone means RoleTake.
	Anonymous Role

	// Throttle, if not nil, decides CL.THROTTLE, for programs that need hooks or a fallback there. It should have no
	// policy: rules that match a request without attributes would apply in addition to the limit of the command.
	// If nil, the server creates a limiter without a policy for the same store. It allows requests while the
	// store does not answer.
	Throttle *mete.Limiter

	// MaxClients bounds the connections. A further client replaces the client that has been idle for the longest
	// time, if that is at least 5 minutes. Otherwise it gets an error and is disconnected. 0 means
	// [DefaultMaxClients].
	MaxClients int

	// IdleTimeout closes connections that send nothing for this long. 0 means never, as in Redis: TCP keepalive ends
	// the connections of failed machines, and MaxClients replaces idle clients.
	IdleTimeout time.Duration

	// HandshakeTimeout bounds the TLS handshake, and the time from the connection to a successful AUTH if
	// it is necessary. 0 means [DefaultHandshakeTimeout].
	HandshakeTimeout time.Duration

	// WriteTimeout bounds the time that a client may take to read replies. If a client reads too slowly, its
	// connection is closed after between half of it and all of it. 0 means [DefaultWriteTimeout].
	WriteTimeout time.Duration

	// MaxWait bounds MAXWAIT of METE.TAKE. 0 means [DefaultMaxWait].
	MaxWait time.Duration

	// AlsoRead lists attributes that the caller's hooks read. METE.TAKE and METE.PEEK accept them although the
	// policy does not read them.
	AlsoRead []policy.Attribute

	// Version is the version of the program that INFO shows. It may be empty.
	Version string

	// OnChange, if not nil, is called after METE.REFUND and METE.RESET, for an audit log. It must be safe for
	// concurrent use.
	OnChange func(context.Context, Change)

	// Log gets failures of connections that are not the client's. Nil means [slog.Default].
	Log *slog.Logger
}

// A Login has the credentials of AUTH or HELLO.
type Login struct {
	User     string // "default" if the client sends a password alone
	Password string
	Address  string // of the client, with its port
}

// A Change describes one METE.REFUND or METE.RESET.
type Change struct {
	Command string // "refund" or "reset"
	User    string // of AUTH; empty if the client has not authenticated
	Role    Role
	Address string // of the client
	Request *mete.Request
	Err     error // nil if the change succeeded
}

func (c *Config) complete(lim *mete.Limiter) error {
	if lim == nil {
		return errors.New("respapi: new: limiter is required")
	}
	var wrong []error
	if c.IdleTimeout < 0 {
		wrong = append(wrong, fmt.Errorf("respapi: new: IdleTimeout %v: must not be negative", c.IdleTimeout))
	}
	if c.MaxClients < 0 {
		wrong = append(wrong, fmt.Errorf("respapi: new: MaxClients %d: must not be negative", c.MaxClients))
	}
	for _, one := range []struct {
		name  string
		value *time.Duration
		usual time.Duration
	}{
		{"HandshakeTimeout", &c.HandshakeTimeout, DefaultHandshakeTimeout},
		{"WriteTimeout", &c.WriteTimeout, DefaultWriteTimeout},
		{"MaxWait", &c.MaxWait, DefaultMaxWait},
	} {
		if *one.value < 0 {
			wrong = append(wrong, fmt.Errorf("respapi: new: %s %v: must not be negative", one.name, *one.value))
		} else if *one.value == 0 {
			*one.value = one.usual
		}
	}
	if c.Anonymous < RoleNone || c.Anonymous > RoleOperate {
		wrong = append(wrong, fmt.Errorf("respapi: new: Anonymous %d: must be a role from RoleNone to RoleOperate", c.Anonymous))
	}
	if c.Anonymous == RoleNone && c.Authenticate == nil {
		c.Anonymous = RoleTake
	}
	if c.MaxClients == 0 {
		c.MaxClients = DefaultMaxClients
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return errors.Join(wrong...)
}
