// SPDX-License-Identifier: Apache-2.0

// Package certificates loads the TLS files of an address and reloads them when they change.
package certificates

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

	"github.com/metehq/mete/internal/follow"
)

// Interval is the polling interval for the files.
const Interval = time.Second

// Files are the paths of PEM files. ClientCA contains the CA certificates for client certificates, and may be empty.
type Files struct{ Cert, Key, ClientCA string }

// Certificates holds the TLS files of an address and reloads them when they change. Unreadable or mismatched files
// never replace valid ones. It is safe for concurrent use.
type Certificates struct {
	files    Files
	protos   []string
	current  atomic.Pointer[tls.Config]
	expires  atomic.Int64 // end of the active certificate, in Unix seconds
	log      *slog.Logger
	contents [3][]byte // as last read
}

// Open reads the files. The server negotiates one of protocols by ALPN, such as "h2". The server chooses no protocol
// if the list is empty.
func Open(files Files, protocols []string, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{files: files, log: log, protos: protocols}
	if _, err := c.refresh(); err != nil {
		return nil, err
	}
	c.warn()
	return c, nil
}

// warn logs that the certificate has expired.
func (c *Certificates) warn() {
	if end := c.Expires(); !end.After(time.Now()) {
		c.log.Warn("certificate expired, clients will reject it", "file", c.files.Cert, "expires_at", end)
	}
}

// TLSConfig returns the TLS settings of a listener. A reload does not affect open connections.
func (c *Certificates) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, // RFC 9325 §3.1.1
		NextProtos: c.protos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load(), nil
		},
	}
}

// Follow reloads the files when they change, until ctx ends.
func (c *Certificates) Follow(ctx context.Context) {
	loop := follow.Loop{
		Interval: Interval,
		Read:     func(context.Context, bool) (bool, error) { return c.refresh() },
		Report: func(news follow.News, err error) {
			switch news {
			case follow.NewsFailed:
				c.log.Error("certificate not replaced, old certificate stays active", "err", err)
			case follow.NewsChanged:
				c.log.Info("certificate reloaded", "file", c.files.Cert, "expires_at", c.Expires())
				c.warn()
			case follow.NewsRecovered:
				c.log.Info("certificate readable again, unchanged", "file", c.files.Cert)
			}
		},
	}
	loop.Run(ctx)
}

// refresh reads the files and activates new contents.
func (c *Certificates) refresh() (changed bool, err error) {
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

// Expires returns the end of the active certificate.
func (c *Certificates) Expires() time.Time { return time.Unix(c.expires.Load(), 0).UTC() }
