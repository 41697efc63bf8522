// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// A client is a connected Redis client. Replies have the types int64, string, bool, []any, map[string]any and nil.
type client interface {
	// pipeline sends the commands together. The error is a failure of the connection.
	pipeline(commands ...[]string) ([]reply, error)
	close()
}

type reply struct {
	value any
	err   error
}

// do sends one command. Failures of the connection and error replies are errors.
func do(c client, command ...string) (any, error) {
	replies, err := c.pipeline(command)
	if err != nil {
		return nil, err
	}
	return replies[0].value, replies[0].err
}

// A connection has the settings of a client.
type connection struct {
	addr           string
	user, password string
	resp           int    // 2 or 3, where the client lets its user choose
	authority      string // file with the certificate of the authority; empty without TLS
}

func (c connection) tls(t testing.TB) *tls.Config {
	if c.authority == "" {
		return nil
	}
	text, err := os.ReadFile(c.authority)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

// dialers connect each client that is a library.
var dialers = []struct {
	name string
	dial func(testing.TB, connection) (client, error)
}{
	{"go-redis", dialGoRedis},
	{"rueidis", dialRueidis},
	{"ioredis", dialNode("ioredis")},
	{"node-redis", dialNode("noderedis")},
	{"valkey-glide", dialNode("glide")},
}

// forEachClient runs a test in parallel with each library.
func forEachClient(t *testing.T, test func(t *testing.T, dial func(testing.TB, connection) (client, error))) {
	for _, d := range dialers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d.dial)
		})
	}
}

// patience bounds every wait for a client.
const patience = time.Minute

type goRedis struct{ client *redis.Client }

func dialGoRedis(t testing.TB, c connection) (client, error) {
	g := goRedis{redis.NewClient(&redis.Options{
		Addr: c.addr, Username: c.user, Password: c.password, Protocol: c.resp, TLSConfig: c.tls(t),
	})}
	if _, err := do(g, "PING"); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g goRedis) pipeline(commands ...[]string) ([]reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pipe := g.client.Pipeline()
	var results []*redis.Cmd
	for _, command := range commands {
		results = append(results, pipe.Do(ctx, toAny(command)...))
	}
	_, err := pipe.Exec(ctx)
	var replies []reply
	isReply := false
	for _, result := range results {
		value, one := result.Result()
		replies = append(replies, reply{toStrings(value), ignoreNil(one)})
		isReply = isReply || one != nil && errors.Is(err, one)
	}
	if isReply {
		err = nil
	}
	return replies, err // of AUTH, for example
}

func (g goRedis) close() { g.client.Close() }

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func toAny(command []string) (args []any) {
	for _, arg := range command {
		args = append(args, arg)
	}
	return args
}

// toStrings makes all keys of maps strings.
func toStrings(value any) any {
	switch v := value.(type) {
	case map[any]any:
		texts := map[string]any{}
		for key, value := range v {
			text, _ := key.(string)
			texts[text] = toStrings(value)
		}
		return texts
	case []any:
		for i := range v {
			v[i] = toStrings(v[i])
		}
	}
	return value
}

type rueidisClient struct{ client rueidis.Client }

func dialRueidis(t testing.TB, c connection) (client, error) {
	r, err := rueidis.NewClient(rueidisOptions(t, c))
	if err != nil {
		return nil, err
	}
	return rueidisClient{r}, nil
}

// rueidisOptions disables the client cache, because it needs CLIENT TRACKING.
func rueidisOptions(t testing.TB, c connection) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{c.addr}, Username: c.user, Password: c.password, TLSConfig: c.tls(t),
		DisableCache: true, AlwaysRESP2: c.resp == 2,
	}
}

func (r rueidisClient) pipeline(commands ...[]string) ([]reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var list rueidis.Commands
	for _, command := range commands {
		list = append(list, r.client.B().Arbitrary(command...).Build())
	}
	var replies []reply
	for _, result := range r.client.DoMulti(ctx, list...) {
		value, err := result.ToAny()
		if err = ignoreRueidisNil(err); err != nil {
			if _, isReply := rueidis.IsRedisErr(err); !isReply {
				return nil, err
			}
		}
		replies = append(replies, reply{toStrings(value), err})
	}
	return replies, nil
}

func (r rueidisClient) close() { r.client.Close() }

func ignoreRueidisNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

// splitPort returns the port as a number, as Node.js wants it.
func splitPort(t testing.TB, addr string) (host string, port int) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	return host, port
}
