// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/metehq/mete/bench/daemon"
)

// policy allows every request, and leaves every bucket less than full.
//
//go:embed policy.yaml
var policy []byte

// What nginx is told: of the upstream, and of the gateways in front of it. Capitals
// stand for addresses.
var (
	//go:embed upstream.conf
	upstreamConf string
	//go:embed gateway.conf
	gatewayConf string
)

// api starts mete that answers its API.
func (s *stage) api(ctx context.Context) (*server, error) {
	return s.once("api", func() (*server, error) { return s.serve(ctx, nil, "api.yaml", "") })
}

// gate starts mete as a reverse proxy.
func (s *stage) gate(ctx context.Context) (*server, error) {
	return s.once("gate", func() (*server, error) {
		upstream, err := s.upstream(ctx)
		if err != nil {
			return nil, err
		}
		return s.serve(ctx, nil, "gate.yaml", "upstream: "+upstream.url+"\n")
	})
}

// serve starts mete with settings of its own.
func (s *stage) serve(ctx context.Context, variables []string, name, settings string) (*server, error) {
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return nil, err
	}
	config, err := s.write(name, []byte(fmt.Sprintf("listen: %s\nadmin_listen: 127.0.0.1:0\npolicy: policy.yaml\n%s", addr, settings)))
	if err != nil {
		return nil, err
	}
	return s.run(ctx, variables, addr, s.mete, "serve", "--config", config)
}

// constant starts a server that answers what mete once answered r.
func (s *stage) constant(r request) func(context.Context) (*server, error) {
	name := fmt.Sprintf("answer-%d", len(r.body))
	return func(ctx context.Context) (*server, error) {
		return s.once(name, func() (*server, error) {
			answer, err := s.ask(ctx, r)
			if err != nil {
				return nil, err
			}
			file, err := s.write(name, answer)
			if err != nil {
				return nil, err
			}
			return s.bare(ctx, "-answer", file)
		})
	}
}

// ask returns what mete answers r.
func (s *stage) ask(ctx context.Context, r request) ([]byte, error) {
	api, err := s.api(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, api.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// bareGate starts a reverse proxy that does nothing else.
func (s *stage) bareGate(ctx context.Context) (*server, error) {
	return s.once("bare gate", func() (*server, error) {
		upstream, err := s.upstream(ctx)
		if err != nil {
			return nil, err
		}
		return s.bare(ctx, "-upstream", upstream.url)
	})
}

func (s *stage) bare(ctx context.Context, args ...string) (*server, error) {
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return nil, err
	}
	return s.run(ctx, nil, addr, s.floor, append([]string{"-listen", addr}, args...)...)
}

// upstream starts the server behind proxies and gateways.
func (s *stage) upstream(ctx context.Context) (*server, error) {
	return s.once("upstream", func() (*server, error) {
		return s.nginx(ctx, "upstream", upstreamConf, "ANSWER", strings.Repeat("0123456789abcde ", 64))
	})
}

// alone starts a gateway that asks nobody.
func (s *stage) alone(ctx context.Context) (*server, error) {
	return s.once("alone", func() (*server, error) {
		upstream, err := s.upstream(ctx)
		if err != nil {
			return nil, err
		}
		return s.nginx(ctx, "alone", gatewayConf, "UPSTREAM", address(upstream), "METE", address(upstream), "ASK", "off")
	})
}

// asking returns what starts a gateway that asks mete, whose processor time counts as
// its own.
func (s *stage) asking(name string, variables ...string) func(context.Context) (*server, error) {
	return func(ctx context.Context) (*server, error) {
		return s.once(name, func() (*server, error) {
			upstream, err := s.upstream(ctx)
			if err != nil {
				return nil, err
			}
			asked, err := s.serve(ctx, variables, name+".yaml", "decision_profile: nginx\ntrusted_proxies: [127.0.0.1]\n")
			if err != nil {
				return nil, err
			}
			front, err := s.nginx(ctx, name, gatewayConf, "UPSTREAM", address(upstream), "METE", address(asked), "ASK", "/_limit")
			if err != nil {
				return nil, err
			}
			front.pids = append(front.pids, asked.pids...)
			return front, nil
		})
	}
}

func address(s *server) string { return strings.TrimPrefix(s.url, "http://") }

// nginx starts nginx as one process with a configuration in which words stand for
// others.
func (s *stage) nginx(ctx context.Context, name, conf string, words ...string) (*server, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		// Debian keeps it where users do not look.
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, fmt.Errorf("%w: install it", err)
		}
	}
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.dir+"/"+name, 0o700); err != nil {
		return nil, err
	}
	file, err := s.write(name+"/nginx.conf", []byte(strings.NewReplacer(append(words, "LISTEN", addr)...).Replace(conf)))
	if err != nil {
		return nil, err
	}
	return s.run(ctx, nil, addr, program, "-p", s.dir+"/"+name, "-e", "stderr", "-c", file)
}
