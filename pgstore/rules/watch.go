// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/policy"
)

// How long to wait before the next attempt to connect: at first, and at most.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// lookPause is the least time between two looks. Every user of a database may notify
// any channel, as often as they like.
const lookPause = 50 * time.Millisecond

// Watch follows the tables until ctx ends. For each revision other than since, that
// of the [Source.Load] before, it calls changed once, with what Load returns: a
// policy, or an [Errors]. It never calls it twice at a time, nor for what is wrong
// with the connection: it then connects again, and says so to the logger.
//
// It has one connection, on which the server tells it of changes, and on which it
// looks at the revision every [Config.Poll] besides. Behind a pooler that gives
// connections away between transactions nobody could be told anything; there, and
// on a replica, it just looks more often.
func (s *Source) Watch(ctx context.Context, since int64, opts policy.Options, changed func(*policy.Matcher, int64, error)) {
	w := &watcher{Source: s, opts: opts, changed: changed, seen: since}
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, mostPause) {
		answered, err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if answered {
			pause = firstPause
		}
		w.lost(err)
		sleep(ctx, pause/2+rand.N(pause)) // not all nodes at once
	}
}

// applicationName is what connections call themselves, unless the URL says otherwise.
const applicationName = "mete"

// A watcher is one call of Watch.
type watcher struct {
	*Source
	opts    policy.Options
	changed func(*policy.Matcher, int64, error)
	seen    int64 // the revision that was dealt with last
	called  bool  // by the server, since the last look
	failing bool  // and that has been logged
	polling bool  // and that has been logged
}

// lost notes that there is no connection.
func (w *watcher) lost(err error) {
	if !w.failing {
		w.config.Logger.Warn("cannot follow rules in the database, active rules stay", "err", err)
	}
	w.failing = true
}

// found notes that there is one again.
func (w *watcher) found() {
	if w.failing {
		w.config.Logger.Info("rules in the database followed again")
	}
	w.failing = false
}

// follow connects, and goes on until the connection is lost or ctx ends. It reports
// whether there was an answer.
func (w *watcher) follow(ctx context.Context) (answered bool, err error) {
	conn, err := w.connect(ctx)
	if err != nil {
		return false, err
	}
	defer hangUp(conn)
	told, err := w.listen(ctx, conn)
	if err != nil {
		return false, err
	}
	for {
		looked := time.Now()
		if err := w.look(ctx, conn); err != nil {
			return answered, err
		}
		answered = true
		w.found()
		if err := w.wait(ctx, conn, told); err != nil {
			return true, err
		}
		sleep(ctx, time.Until(looked.Add(lookPause)))
	}
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	rest := time.NewTimer(d)
	defer rest.Stop()
	select {
	case <-ctx.Done():
	case <-rest.C:
	}
}

// connect makes the connection, which calls itself mete rules.
func (w *watcher) connect(ctx context.Context) (*pgx.Conn, error) {
	config := w.pool.Config().ConnConfig.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing stays in the server
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	// That it was called is all that counts: a flood of calls is not kept.
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { w.called = true }
	if config.RuntimeParams["application_name"] == applicationName {
		config.RuntimeParams["application_name"] += " rules"
	}
	return pgx.ConnectConfig(ctx, config)
}

// hangUp ends a connection, which may be broken.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// listen asks to be told of changes. It is false where that would be in vain: a
// pooler makes up the number of the process that it pretends to be, and a server that
// only follows another has nothing to tell.
func (w *watcher) listen(ctx context.Context, conn *pgx.Conn) (told bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var process uint32
	var follows bool
	const ask = "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()"
	if err := conn.QueryRow(ctx, ask, pgx.QueryExecModeExec).Scan(&process, &follows); err != nil {
		return false, err
	}
	if told = process == conn.PgConn().PID() && !follows; told {
		_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{w.config.Schema}.Sanitize())
		if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
			return true, err
		}
		told = false
	}
	if !w.polling {
		w.config.Logger.Info("rules polled: no notifications through a pooler or from a replica", "every", w.every(told))
	}
	w.polling = true
	return false, nil
}

// every is the time between two looks.
func (w *watcher) every(told bool) time.Duration {
	if told {
		return w.config.Poll
	}
	return min(w.config.Poll, PooledPoll)
}

// wait returns when there may be something new, or the connection is lost.
func (w *watcher) wait(ctx context.Context, conn *pgx.Conn, told bool) error {
	limited, cancel := context.WithTimeout(ctx, w.every(told))
	defer cancel()
	if !told {
		<-limited.Done()
		return ctx.Err()
	}
	if w.called { // since the last look has begun
		return nil
	}
	_, err := conn.WaitForNotification(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil && !conn.IsClosed() {
		return nil // nobody said anything
	}
	return err
}

// look reads the rules if their revision is another than the last.
func (w *watcher) look(ctx context.Context, conn *pgx.Conn) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w.called = false
	var revision int64
	if err := conn.QueryRow(limited, w.sql(selectRevision), pgx.QueryExecModeExec).Scan(&revision); err != nil {
		return w.missing(ctx, err)
	}
	if revision == w.seen {
		return nil
	}
	set, err := w.read(ctx, conn, onlyActive)
	if mistakes, broken := errors.AsType[Errors](err); broken {
		w.seen = revision
		w.changed(nil, revision, mistakes)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	w.seen = set.Revision
	m, err := set.Compile(w.opts)
	w.changed(m, set.Revision, err)
	return nil
}
