// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/metehq/mete/internal/follow"
)

// States for the service manager. Reloads are not among them, because the server stays ready.
const (
	managerReady    = daemon.SdNotifyReady + "\nSTATUS=Ready"
	managerStopping = daemon.SdNotifyStopping + "\nSTATUS=Answering the requests in flight"
)

// notifyTimeout bounds the wait for a service manager that does not read its messages.
const notifyTimeout = 100 * time.Millisecond

// notifyManager sends a state to the service manager with sd_notify, if there is one. It only logs failures.
func notifyManager(log *slog.Logger, state string) {
	told := make(chan error, 1)
	go func() {
		_, err := daemon.SdNotify(false, state)
		told <- err
	}()
	timer := time.NewTimer(notifyTimeout)
	defer timer.Stop()
	select {
	case err := <-told:
		if err != nil && state == managerReady {
			log.Warn("service manager not notified", "err", err)
		}
	case <-timer.C:
	}
}

// watchdog returns a component that sends keep-alive messages to systemd if the unit sets WatchdogSec. They
// continue during shutdown.
func watchdog(log *slog.Logger) component {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("service manager watchdog not notified", "err", err)
	}
	if interval <= 0 {
		return component{Name: "watchdog"}
	}
	beat := func() { notifyManager(log, daemon.SdNotifyWatchdog) }
	return background("watchdog", func(ctx context.Context) {
		beat()
		follow.Every(ctx, max(interval/2, time.Millisecond), beat)
	})
}
