// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/follow"
)

// fileInterval is the polling interval for certificate and token files.
const fileInterval = time.Second

// certificates holds the TLS files of an address and reloads them when they change. Unreadable or mismatched files
// never replace valid ones.
type certificates struct {
	files    config.TLS
	protos   []string
	current  atomic.Pointer[tls.Config]
	expires  atomic.Int64 // end of the active certificate, in Unix seconds
	log      *slog.Logger
	contents [3][]byte // as last read
}

func newCertificates(files config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log, protos: []string{"h2", "http/1.1"}}
	if _, err := c.refresh(); err != nil {
		return nil, err
	}
	c.warn()
	return c, nil
}

// warn logs that the certificate has expired.
func (c *certificates) warn() {
	if end := c.expiry(); !end.After(time.Now()) {
		c.log.Warn("certificate expired, clients will reject it", "file", c.files.Cert, "expires_at", end)
	}
}

// tlsConfig returns the TLS settings of a listener. A reload does not affect open connections.
func (c *certificates) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, // RFC 9325 §3.1.1
		NextProtos: c.protos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load(), nil
		},
	}
}

// follow reloads the files when they change, until ctx ends.
func (c *certificates) follow(ctx context.Context) {
	loop := follow.Loop{
		Interval: fileInterval,
		Read:     func(context.Context, bool) (bool, error) { return c.refresh() },
		Report: func(news follow.News, err error) {
			switch news {
			case follow.NewsFailed:
				c.log.Error("certificate not replaced, old certificate stays active", "err", err)
			case follow.NewsChanged:
				c.log.Info("certificate reloaded", "file", c.files.Cert, "expires_at", c.expiry())
				c.warn()
			case follow.NewsRecovered:
				c.log.Info("certificate readable again, unchanged", "file", c.files.Cert)
			}
		},
	}
	loop.Run(ctx)
}

// refresh reads the files and activates new contents.
func (c *certificates) refresh() (changed bool, err error) {
	var contents [3][]byte
	for i, name := range [...]string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if name == "" {
			continue
		}
		if contents[i], err = os.ReadFile(name); err != nil {
			return false, err
		}
	}
	if slices.EqualFunc(contents[:], c.contents[:], slices.Equal) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return false, fmt.Errorf("%s, %s: %w", c.files.Cert, c.files.Key, err)
	}
	next := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: c.protos, Certificates: []tls.Certificate{pair}}
	if c.files.ClientCA != "" {
		next.ClientAuth, next.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !next.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return false, fmt.Errorf("%s: %w", c.files.ClientCA, errNoAuthority)
		}
	}
	c.contents = contents
	c.expires.Store(pair.Leaf.NotAfter.Unix())
	c.current.Store(next)
	return true, nil
}

var errNoAuthority = errors.New("the file has no CA certificate in PEM")

// expiry returns the end of the active certificate.
func (c *certificates) expiry() time.Time { return time.Unix(c.expires.Load(), 0).UTC() }
