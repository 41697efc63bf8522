// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/metehq/mete/internal/follow"
)

// States that the service manager is told. A reload is not one: the server is ready
// throughout.
const (
	managerReady    = daemon.SdNotifyReady + "\nSTATUS=Ready"
	managerStopping = daemon.SdNotifyStopping + "\nSTATUS=Answering the requests in flight"
)

// tellTimeout bounds the wait for a manager that does not read its messages.
const tellTimeout = 100 * time.Millisecond

// tellManager sends a state to the service manager, if there is one (sd_notify). A failure
// does not end the server.
func tellManager(log *slog.Logger, state string) {
	told := make(chan error, 1)
	go func() {
		_, err := daemon.SdNotify(false, state)
		told <- err
	}()
	timer := time.NewTimer(tellTimeout)
	defer timer.Stop()
	select {
	case err := <-told:
		if err != nil && state == managerReady {
			log.Warn("service manager not notified", "err", err)
		}
	case <-timer.C:
	}
}

// watchdog returns a component that tells systemd that the server is alive, also while it
// stops, if the unit sets WatchdogSec.
func watchdog(log *slog.Logger) component {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("watchdog of the service manager not served", "err", err)
	}
	if interval <= 0 {
		return component{Name: "watchdog"}
	}
	beat := func() { tellManager(log, daemon.SdNotifyWatchdog) }
	return background("watchdog", func(ctx context.Context) {
		beat()
		follow.Every(ctx, max(interval/2, time.Millisecond), beat)
	})
}
