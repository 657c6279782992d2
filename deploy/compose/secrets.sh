#!/bin/sh
# Makes what the containers of docker-compose.yml prove themselves with, once, in a folder that is a volume there: for each
# container a folder that only it can read, with what it needs and no more.
#
#   secrets.sh make  [FOLDER]    makes everything, unless it is there; docker compose up does this first
#   secrets.sh token [FOLDER]    shows the operator's token, which may do everything over HTTP
#   secrets.sh nats  [FOLDER]    shows user and password of game services, as NATS takes them in a URL
#
# To have new ones, stop everything, remove the volume, and start again: docker compose down && docker volume rm ranktree_secrets
set -eu
folder=${2:-/secrets}

random() {
    bytes=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
    [ "${#bytes}" = 64 ]
    echo "$bytes"
}

# owner, folder: whose it is from here on. Modes come first, because without more than CAP_CHOWN nothing can be done to it afterwards.
give() {
    chmod 0400 "$folder/$2"/*
    chmod 0500 "$folder/$2"
    if [ "$(id -u)" = 0 ]; then
        chown "$1:$1" "$folder/$2"/* "$folder/$2"
    fi
}

make() {
    if [ -e "$folder/made" ]; then
        return
    fi
    umask 077
    # What an interruption left was used by nobody, since they all wait for the end of this.
    for left in "$folder"/*/; do
        if [ -d "$left" ] && [ "$(id -u)" = 0 ]; then
            chown 0:0 "$left"
        fi
    done
    chmod -Rf u+rwX "$folder"/* || true
    rm -rf "$folder"/*
    mkdir "$folder/ranktree" "$folder/nats" "$folder/prometheus" "$folder/load" "$folder/operator"

    for user in operator:admin prometheus:read load:read; do
        name=${user%:*}
        secret=$(random)
        echo "rkt_$secret" > "$folder/$name/token"
        ranktree token hash --scope "${user#*:}" --name "$name" < "$folder/$name/token" >> "$folder/ranktree/tokens.toml"
    done
    # As the configuration of nats-server names them. They begin with a letter, so that it reads them as text. ROUTE is for several
    # servers that find each other.
    for user in NODE GAME REJECTS ROUTE; do
        secret=$(random)
        echo "RANKTREE_${user}_PASSWORD=nats_$secret" >> "$folder/nats/passwords"
    done
    sed -n 's/^RANKTREE_NODE_PASSWORD=//p' "$folder/nats/passwords" > "$folder/ranktree/nats-password"
    sed -n 's/^RANKTREE_GAME_PASSWORD=//p' "$folder/nats/passwords" > "$folder/load/nats-password"
    cp "$folder/load/nats-password" "$folder/operator/nats-password"

    give 65532 ranktree
    give 65531 nats
    give 65534 prometheus
    give 65530 load
    # Its own folders are for the others to pass through.
    chmod 0755 "$folder"
    : > "$folder/made"
}

case ${1:-} in
make) make ;;
token) cat "$folder/operator/token" ;;
nats)
    password=$(cat "$folder/operator/nats-password")
    echo "game:$password"
    ;;
*)
    echo "secrets.sh make, token or nats" >&2
    exit 2
    ;;
esac
