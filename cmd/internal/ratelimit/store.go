// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
)

var errNoStore = errors.New("REDIS_URL is not set: set it to HOST:PORT, or set METE_STORE: " +
	"redis://HOST and postgres://HOST/DATABASE share the limits of all replicas, memory keeps them in one process")

// storeURL returns the store of METE_STORE or of the Redis settings.
func (s *Settings) storeURL() (*storeurl.URL, error) {
	if s.StoreURL != "" {
		raw := s.StoreURL
		if raw == string(storeurl.Memory) {
			raw += ":"
		}
		u, err := storeurl.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("METE_STORE: %w", err)
		}
		return u, nil
	}
	if s.Redis.URL == "" {
		return nil, errNoStore
	}
	u, err := s.Redis.storeURL()
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return u, nil
}

// CheckStore returns the error of settings without a valid store. It does not connect.
func (s *Settings) CheckStore() error {
	_, err := s.storeURL()
	return err
}

// storeURL writes the settings as a URL for package redisstore.
func (r *Redis) storeURL() (*storeurl.URL, error) {
	raw, err := r.compose()
	if err != nil {
		return nil, err
	}
	u, err := storeurl.Parse(raw)
	if err != nil {
		return nil, err
	}
	if r.AnyName && u.Redis.Options.TLSConfig != nil {
		verifyChainOnly(u.Redis.Options.TLSConfig)
	}
	return u, nil
}

func (r *Redis) compose() (string, error) {
	query := url.Values{}
	setNonEmpty := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	isTLS, address := r.TLS.Enabled, r.URL
	scheme, rest, hasScheme := strings.Cut(address, "://")
	switch {
	case !hasScheme:
	case scheme == "redis" || scheme == "rediss":
		isTLS, address = isTLS || scheme == "rediss", rest
	default:
		return "", fmt.Errorf("%q: unknown scheme: write HOST:PORT or redis://HOST:PORT", scheme)
	}
	if isTLS {
		setNonEmpty("ca", r.TLS.Authority)
		setNonEmpty("cert", r.TLS.Cert)
		setNonEmpty("key", r.TLS.Key)
	}
	if r.Timeout > 0 {
		query.Set("timeout", r.Timeout.String())
	}
	form := ""
	switch {
	case r.Type == "SENTINEL":
		master, sentinels, ok := strings.Cut(address, ",")
		if !ok || master == "" {
			return "", errors.New("must be MASTER,HOST:PORT,… with REDIS_TYPE=sentinel: the name of the master, then its sentinels")
		}
		form, address = "+sentinel", sentinels+"/"+url.PathEscape(master)
		user, password := splitAuth(r.SentinelAuth)
		setNonEmpty("sentinel_username", user)
		setNonEmpty("sentinel_password", password)
	case r.Type == "CLUSTER":
		form = "+cluster"
	case strings.HasPrefix(address, "/"):
		form = "+unix"
	case strings.Contains(address, ","):
		return "", errors.New("has a comma: set REDIS_TYPE to sentinel or cluster, or write one HOST:PORT")
	}
	auth := ""
	if user, password := splitAuth(r.Auth); password != "" {
		auth = url.QueryEscape(user) + ":" + url.QueryEscape(password) + "@"
		auth = strings.ReplaceAll(auth, "+", "%20")
		address = address[strings.LastIndex(address, "@")+1:]
	}
	begin := "redis"
	if isTLS {
		begin = "rediss"
	}
	raw := begin + form + "://" + auth + address
	if parameters := query.Encode(); parameters != "" {
		raw += "?" + parameters
	}
	return raw, nil
}

// splitAuth reads PASSWORD or USER:PASSWORD.
func splitAuth(auth string) (user, password string) {
	if user, password, ok := strings.Cut(auth, ":"); ok {
		return user, password
	}
	return "", auth
}

// verifyChainOnly changes c to verify the certificate of a server, but not its name.
func verifyChainOnly(c *tls.Config) {
	c.InsecureSkipVerify = true // VerifyConnection verifies the chain
	c.VerifyConnection = func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
		for _, intermediate := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(intermediate)
		}
		_, err := state.PeerCertificates[0].Verify(options)
		return err
	}
}

// An openedStore is the store of the service, with a circuit breaker if it is shared.
type openedStore struct {
	stores.Store
	limits mete.Store   // for the limiter
	guard  *guard.Store // nil for a store in this process
}

// openStore opens the store, and tries again while it does not answer.
func openStore(ctx context.Context, s *Settings, u *storeurl.URL, log *slog.Logger) (*openedStore, error) {
	begin, delay := time.Now(), s.FirstWait
	for {
		opened, kind, err := stores.Open(ctx, u, stores.Options{Log: log})
		if err == nil {
			return guardStore(opened, kind, log)
		}
		if !errors.Is(err, store.ErrUnavailable) {
			return nil, err
		}
		if s.MaxWait > 0 && time.Since(begin) >= s.MaxWait {
			return nil, fmt.Errorf("%w; REDIS_STARTUP_MAX_ELAPSED_TIME is %v", err, s.MaxWait)
		}
		log.Warn("store unreachable, trying again", "addr", u.String(), "in", delay, "err", err)
		if err := sleep(ctx, delay/2+rand.N(delay/2+1)); err != nil {
			return nil, err
		}
		delay = min(2*delay, s.LongestWait)
	}
}

func guardStore(opened stores.Store, kind *stores.Kind, log *slog.Logger) (*openedStore, error) {
	o := &openedStore{Store: opened, limits: opened}
	if !kind.Shared {
		return o, nil
	}
	var err error
	o.guard, err = guard.New(opened, guard.Config{OnChange: func(from, to guard.State) {
		switch {
		case to == guard.StateOpen && from == guard.StateClosed:
			log.Error("circuit breaker opened", "effect", "calls fail, and Envoy follows its failure_mode_deny")
		case to == guard.StateClosed:
			log.Warn("circuit breaker closed")
		}
	}})
	if err != nil {
		opened.Close()
		return nil, err
	}
	o.limits = o.guard
	return o, nil
}

// sleep waits for a duration or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
