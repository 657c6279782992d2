#!/bin/sh
# Installs, upgrades, removes and purges the package for real, in a copy of this machine's root that is gone
# afterwards: an overlay in a mount namespace of its own. Nothing of the machine is changed. There is no
# systemd: systemctl writes down what it is asked, and enables units.
#
#   debian/try.sh OLD.deb NEW.deb
#
# Exit code: 0 all well, 1 something is not, 77 it cannot be tried here (no root, no namespaces, no dpkg).
set -eu

usage() {
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

outside() {
	for program in unshare dpkg chroot mount setpriv systemctl deb-systemd-helper adduser; do
		command -v "$program" >/dev/null || { echo "$program is not here" >&2; exit 77; }
	done
	unshare --mount --pid --fork true 2>/dev/null || { echo "namespaces are only for root here" >&2; exit 77; }
	if dpkg -s ranktree >/dev/null 2>&1 || getent passwd ranktree >/dev/null || [ -e /var/lib/ranktree ]; then
		echo "ranktree is installed on this machine" >&2
		exit 77
	fi
	scratch=$(mktemp -d)
	trap 'rmdir "$scratch"' EXIT
	status=0
	unshare --mount --pid --fork sh "$0" --mount "$scratch" "$1" "$2" || status=$?
	exit "$status"
}

# In namespaces of their own, which take what is mounted here with them.
mounted() {
	scratch=$1
	mount -t tmpfs tmpfs "$scratch"
	mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
	root=$scratch/root
	mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$root" || exit 77
	mount -t tmpfs tmpfs "$root/run"
	mount -t tmpfs tmpfs "$root/tmp"
	mount -t proc proc "$root/proc"
	mount --bind /dev "$root/dev"
	if ! [ -e "$root/var/lib/dpkg/status" ] || ! [ -x "$root/usr/bin/dpkg" ]; then
		echo "this machine's root is in parts" >&2
		exit 77
	fi
	cp "$2" "$root/tmp/old.deb"
	cp "$3" "$root/tmp/new.deb"
	cp "$0" "$root/tmp/try.sh"
	exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
		sh /tmp/try.sh --inside
}

step() {
	echo "- $*"
}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# What systemctl was asked since the last call.
asked() {
	cat /tmp/asked
	: >/tmp/asked
}

# The names, owners, modes and contents of all data.
data() {
	(cd /var/lib/ranktree && find . -printf '%p %u %g %m\n' | sort && find . -type f -exec sha256sum {} + | sort)
}

# Runs the service as the unit does, as far as systemd is not needed for it, and a command with its address.
with_service() {
	set -- "$@"
	: >/tmp/said
	setpriv --reuid=ranktree --regid=ranktree --clear-groups env RANKTREE_CONFIG=/tmp/ranktree.toml \
		RANKTREE_DATA_DIR=/var/lib/ranktree RANKTREE_LISTEN=127.0.0.1:0 /usr/bin/ranktree serve >/tmp/said 2>/tmp/log &
	service=$!
	until grep -q listening /tmp/said; do
		kill -0 "$service" 2>/dev/null || { cat /tmp/log >&2; fail "the service did not start"; }
		sleep 0.1
	done
	url=$(sed 's/.* //' /tmp/said)
	/usr/bin/ranktree healthcheck --url "$url" >/dev/null || fail "the service is not ready"
	"$@" --url "$url" || fail "$*"
	kill "$service"
	wait "$service" || fail "the service did not end in order"
}

inside() {
	mkdir -p /run/systemd/system
	rm -f /usr/sbin/policy-rc.d
	: >/tmp/asked
	mv /usr/bin/systemctl /usr/bin/systemctl-of-systemd
	cat >/usr/bin/systemctl <<-'END'
		#!/bin/sh
		echo "$*" >>/tmp/asked
		case "$*" in
		*is-active*) [ -e /tmp/runs ] ;;
		*is-enabled*) echo enabled ;;
		*preset*) exec /usr/bin/systemctl-of-systemd "$@" ;;
		esac
	END
	chmod 755 /usr/bin/systemctl
	wanted=/etc/systemd/system/multi-user.target.wants/ranktree.service

	step "install"
	dpkg --no-triggers -i /tmp/old.deb >/tmp/dpkg 2>&1 </dev/null || { cat /tmp/dpkg >&2; fail "dpkg -i"; }
	number=$(id -u ranktree) || fail "there is no user"
	[ "$number" -lt 1000 ] || fail "the user is none of the system's"
	[ "$(stat -c '%a %U' /etc/ranktree/ranktree.toml)" = "640 root" ] || fail "the settings can be read"
	[ -L "$wanted" ] || fail "the service is not enabled"
	[ ! -e /var/lib/ranktree ] || fail "the package made the data directory, which is systemd's to make"
	asked | grep -qE '(^| )start .*ranktree' || fail "the service was not started"

	step "serve as its user, and write"
	cp /etc/ranktree/ranktree.toml /tmp/ranktree.toml
	chmod 644 /tmp/ranktree.toml
	install -d -o ranktree -g ranktree -m 750 /var/lib/ranktree
	printf 'member,score\nana,3\nbo,2\n' >/tmp/scores.csv
	with_service /usr/bin/ranktree import /tmp/scores.csv --board arena >/dev/null
	data >/tmp/before

	step "upgrade while it runs: settings and data stay, and it is restarted"
	echo '# mine' >>/etc/ranktree/ranktree.toml
	touch /tmp/runs
	dpkg --no-triggers -i /tmp/new.deb >/tmp/dpkg 2>&1 </dev/null || { cat /tmp/dpkg >&2; fail "the upgrade"; }
	asked >/tmp/of_upgrade
	grep -qE '(^| )restart .*ranktree' /tmp/of_upgrade || fail "the service was not restarted: $(cat /tmp/of_upgrade)"
	! grep -qE '(^| )stop' /tmp/of_upgrade || fail "the service was stopped before its files were replaced"
	grep -q '^# mine' /etc/ranktree/ranktree.toml || fail "the settings were replaced"
	[ "$(id -u ranktree)" = "$number" ] || fail "the user is another one"
	data | cmp - /tmp/before || fail "the upgrade touched the data"
	with_service /usr/bin/ranktree export --board arena >/tmp/exported
	grep -q ana /tmp/exported || fail "the scores are gone: $(cat /tmp/exported)"
	data >/tmp/before

	step "upgrade while it is stopped and disabled: it stays so"
	rm /tmp/runs "$wanted"
	dpkg --no-triggers -i /tmp/new.deb >/tmp/dpkg 2>&1 </dev/null || { cat /tmp/dpkg >&2; fail "the second upgrade"; }
	! asked | grep -qE '(^| )(re)?start ' || fail "a service that was stopped was started"
	[ ! -e "$wanted" ] || fail "a service that was disabled was enabled"

	step "remove: settings and data stay"
	dpkg --no-triggers -r ranktree >/tmp/dpkg 2>&1 </dev/null || { cat /tmp/dpkg >&2; fail "dpkg -r"; }
	asked | grep -qE '(^| )stop .*ranktree' || fail "the service was not stopped"
	[ ! -e /usr/bin/ranktree ] || fail "the program is still there"
	[ -e /etc/ranktree/ranktree.toml ] || fail "the settings are gone"
	data | cmp - /tmp/before || fail "the removal touched the data"

	step "purge: the data stay"
	dpkg --no-triggers -P ranktree >/tmp/dpkg 2>&1 </dev/null || { cat /tmp/dpkg >&2; fail "dpkg -P"; }
	grep -q 'rm -r /var/lib/ranktree' /tmp/dpkg || fail "nobody was told of the data"
	[ ! -e /etc/ranktree ] || fail "the settings are still there"
	data | cmp - /tmp/before || fail "the purge touched the data"
	left=$(find /var/lib/systemd /etc/systemd -name '*ranktree*')
	[ -z "$left" ] || fail "it left $left"
	echo "the package was installed, upgraded, removed and purged"
}

case "${1:-}" in
--mount) mounted "$2" "$3" "$4" ;;
--inside) inside ;;
*.deb) outside "$(readlink -f "$1")" "$(readlink -f "$2")" ;;
*) usage ;;
esac
