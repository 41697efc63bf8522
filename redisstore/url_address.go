// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// parseAddress reads the hosts and the database, or the path of a socket.
func (t *target) parseAddress(s scheme, hosts, path string) (err error) {
	path = strings.TrimSuffix(path, "/")
	if s.form == formSocket {
		return t.parseSocket(hosts, path)
	}
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := hostPort(host, s.port)
		if err != nil {
			return err
		}
		t.client.InitAddress = append(t.client.InitAddress, addr)
	}
	switch {
	case s.form == formServer && len(t.client.InitAddress) > 1:
		return errors.New("more than one host: for Sentinel or a cluster, use redis+sentinel:// or redis+cluster://")
	case s.form == formServer:
		t.client.ForceSingleClient = true
		return t.parseDatabase(strings.TrimPrefix(path, "/"))
	case s.form == formCluster && path != "":
		return errors.New("a cluster has only one database: remove the path after the hosts")
	case s.form == formCluster:
		t.client.ClusterOption = rueidis.ClusterOption{ShardsRefreshInterval: refresh}
		return nil
	}
	master, db, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if master, err = url.PathUnescape(master); err != nil || master == "" {
		return errors.New("the Sentinel hosts must be followed by the name of the master: /mymaster")
	}
	t.client.Sentinel = rueidis.SentinelOption{
		MasterSet: master, ClientName: t.client.ClientName, Dialer: t.client.Dialer,
		TLSConfig: t.client.TLSConfig, TopologyRefreshInterval: refresh,
	}
	return t.parseDatabase(db)
}

func (t *target) parseSocket(hosts, path string) error {
	path, err := url.PathUnescape(path)
	if err != nil || hosts != "" || path == "" {
		return errors.New("redis+unix:// must be followed by an absolute path, without a host")
	}
	t.client.InitAddress = []string{path}
	t.client.ForceSingleClient = true
	t.client.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}
	return nil
}

func hostPort(host, port string) (string, error) {
	u, err := url.Parse("redis://" + host)
	bare := err == nil && strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(host, "[") // an IPv6 address without brackets is ambiguous
	if err != nil || bare || u.Hostname() == "" || u.User != nil || u.Path != "" {
		return "", fmt.Errorf("%q is not a valid host or host:port", host)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("the port of %q is not between 1 and 65535", host)
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// parseDatabase reads the number of a database, 0 if text is empty.
func (t *target) parseDatabase(text string) (err error) {
	if text == "" {
		return nil
	}
	if t.client.SelectDB, err = strconv.Atoi(text); err != nil || t.client.SelectDB < 0 {
		return fmt.Errorf("database %q: must be a number, such as 0", text)
	}
	return nil
}
