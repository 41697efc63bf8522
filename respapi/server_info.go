// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// redisVersion is the version of Redis with the commands that clients send to this server. Clients enable features
// by it.
const redisVersion = "7.2.0"

func newRunID() string {
	var id [20]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// info executes INFO [section …]. Clients wait for loading:0 and role:master.
func info(c *client, args [][]byte) {
	s := c.server
	uptime := time.Since(s.started)
	stats := s.Stats()
	port := ""
	if c.nc.LocalAddr() != nil {
		_, port, _ = net.SplitHostPort(c.nc.LocalAddr().String())
	}
	sections := []struct {
		name  string
		lines []string
	}{
		{"Server", []string{
			"redis_version:" + redisVersion, "redis_mode:standalone", "mete_version:" + s.config.Version,
			"os:" + runtime.GOOS + " " + runtime.GOARCH, "process_id:" + fmt.Sprint(os.Getpid()), "run_id:" + s.runID, "tcp_port:" + port,
			fmt.Sprintf("uptime_in_seconds:%d", int64(uptime.Seconds())), fmt.Sprintf("uptime_in_days:%d", int64(uptime.Hours()/24)),
		}},
		{"Clients", []string{fmt.Sprintf("connected_clients:%d", stats.Clients), fmt.Sprintf("maxclients:%d", s.config.MaxClients), "blocked_clients:0"}},
		{"Persistence", []string{"loading:0", "async_loading:0"}},
		{"Stats", []string{
			fmt.Sprintf("total_connections_received:%d", stats.Accepted), fmt.Sprintf("total_commands_processed:%d", stats.Commands),
			fmt.Sprintf("rejected_connections:%d", stats.Rejected), fmt.Sprintf("evicted_clients:%d", stats.Replaced),
		}},
		{"Replication", []string{"role:master", "connected_slaves:0", "master_repl_offset:0"}},
		{"Cluster", []string{"cluster_enabled:0"}},
		{"Keyspace", nil},
	}
	all := len(args) == 1 || slices.ContainsFunc(args[1:], func(word []byte) bool {
		return is(word, "all") || is(word, "default") || is(word, "everything")
	})
	var text strings.Builder
	for _, section := range sections {
		if !all && !slices.ContainsFunc(args[1:], func(word []byte) bool { return is(word, section.name) }) {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		text.WriteString("# " + section.name + "\r\n")
		for _, line := range section.lines {
			text.WriteString(line + "\r\n")
		}
	}
	c.busy.bulk(text.String())
}

// config executes CONFIG GET name …. The server has none of these settings, except for the two that redis-benchmark
// prints.
func config(c *client, args [][]byte) {
	b := c.busy
	switch {
	case !is(args[1], "get"):
		b.unknownSubcommand("CONFIG", args[1])
		return
	case len(args) == 2:
		b.wrongNumber("config|get")
		return
	}
	values := map[string]string{"save": "", "appendonly": "no"}
	var found []string
	for _, word := range args[2:] {
		name := strings.ToLower(string(word))
		if _, ok := values[name]; ok && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	b.mapping(len(found))
	for _, name := range found {
		b.bulk(name)
		b.bulk(values[name])
	}
}

// list executes COMMAND and its subcommands COUNT, DOCS, INFO and LIST.
func list(c *client, args [][]byte) {
	b := c.busy
	if len(args) == 1 {
		b.describeAll(nil)
		return
	}
	word, names := args[1], args[2:]
	switch {
	case is(word, "count") && len(names) == 0:
		b.integer(int64(len(commands)))
	case is(word, "list") && len(names) == 0:
		b.array(len(commands))
		for _, one := range sortedCommands() {
			b.bulk(one.name)
		}
	case is(word, "info"):
		b.describeAll(names)
	case is(word, "docs"):
		b.document(names)
	case is(word, "count") || is(word, "list"):
		b.wrongNumber("command|" + strings.ToLower(string(word)))
	default:
		b.unknownSubcommand("COMMAND", word)
	}
}

// describeAll appends what clients of a cluster need: the arity and the place of the key.
func (r *reply) describeAll(names [][]byte) {
	all := sortedCommands()
	if len(names) > 0 {
		all = all[:0]
		for _, name := range names {
			all = append(all, findCommand(name))
		}
	}
	r.array(len(all))
	for _, one := range all {
		if one == nil {
			r.null()
			continue
		}
		r.array(6)
		r.bulk(one.name)
		r.integer(int64(one.arity))
		r.array(1)
		r.status("fast")
		r.integer(int64(one.key))
		r.integer(int64(one.key))
		r.integer(int64(min(one.key, 1)))
	}
}

func (r *reply) document(names [][]byte) {
	all := sortedCommands()
	if len(names) > 0 {
		all = all[:0]
		for _, name := range names {
			if one := findCommand(name); one != nil {
				all = append(all, one)
			}
		}
	}
	r.mapping(len(all))
	for _, one := range all {
		r.bulk(one.name)
		r.mapping(2)
		r.bulk("summary")
		r.bulk(one.summary)
		r.bulk("group")
		r.bulk("generic")
	}
}
