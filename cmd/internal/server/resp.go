// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/respapi"
)

// A respListener serves Redis clients.
type respListener struct {
	*respapi.Server
	socket *socket
}

// Serve implements listener.
func (l *respListener) Serve() error {
	var at net.Listener = l.socket
	if l.socket.tls != nil {
		at = tls.NewListener(at, l.socket.tls)
	}
	if err := l.Server.Serve(at); !errors.Is(err, respapi.ErrServerClosed) {
		return err
	}
	return nil
}

func (l *respListener) stats() metrics.Listener {
	return metrics.Listener{
		Name: "resp", Connections: l.socket.CountOpen(), CertificateExpires: l.socket.expires(),
		Refused: l.Stats().Rejected, Full: l.socket.CountFull(),
	}
}

// respSlack is the number of connections above the bound, so that respapi can tell a client why it is rejected.
const respSlack = 64

// addRESP adds the RESP address, if the settings have one.
func (a *assembly) addRESP(access *access) error {
	c := a.config
	if c.RESPListen == "" {
		return nil
	}
	options := respapi.Config{
		MaxClients: c.RESPMaxConnections, IdleTimeout: c.Timeouts.RESPIdle, HandshakeTimeout: c.Timeouts.ReadHeader,
		MaxWait: c.MaxWait, AlsoRead: a.alsoRead, Version: buildinfo.Read().Version, Log: a.log,
		OnChange: func(_ context.Context, change respapi.Change) {
			a.log.Info("bucket changed by a RESP client", "command", change.Command, "user", change.User, "from", network(change.Address), "err", change.Err)
		},
	}
	options.Authenticate = access.authenticateUser
	if !c.RequiresToken(c.RESPListen, c.RESPTLS) {
		options.Anonymous = respapi.RoleTake
	}
	server, err := respapi.New(a.limiter, options)
	if err != nil {
		return err
	}
	s, err := a.openSocket("resp-listen", c.RESPListen, c.RESPMaxConnections+respSlack, c.RESPTLS)
	if err != nil {
		return err
	}
	l := &respListener{server, s}
	a.resp = s.Addr()
	a.metrics.Add(metrics.AtListener(l.stats))
	a.add(a.newListenerComponent("resp", l, 0))
	a.log.Info("RESP service open", "address", s.Addr().String(), "token", c.RequiresToken(c.RESPListen, c.RESPTLS))
	return nil
}

// RESPAddr returns the address of the RESP service with the actual port, or nil.
func (s *Server) RESPAddr() net.Addr { return s.resp }

// authenticateUser returns the role of the token in a password. The user has no meaning. The reply to a wrong token
// waits while its address has sent too many of them, so that a connection cannot guess fast. It never delays a valid
// token.
func (a *access) authenticateUser(ctx context.Context, login respapi.Login) (respapi.Role, bool) {
	if len(login.Password) <= config.MaxToken {
		if c, ok := a.callerByHash(a.hash(login.Password)); ok {
			return respRole(c.role), true
		}
	}
	if s := a.wrong.Take("wrong "+network(login.Address), 1); !s.Allowed {
		timer := time.NewTimer(s.RetryAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return respapi.RoleNone, false
}

// respRole returns the role of a RESP client with a token.
func respRole(r httpapi.Role) respapi.Role {
	switch {
	case r >= httpapi.RoleOperate:
		return respapi.RoleOperate
	case r == httpapi.RoleRead:
		return respapi.RoleRead
	}
	return respapi.RoleNone
}
