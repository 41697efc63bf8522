// SPDX-License-Identifier: Apache-2.0

// Package release makes a version of this tree with scripts/release and installs
// it in each way that users have: go install, go get, the Debian package, the RPM
// package and the image. It is all tests. Each needs minutes, for the program is
// built for six platforms.
package release
