# Keeps one PostgreSQL for the process at the other end of standard input: keeper FOLDER BIN
# Orders come one a line, `start` or `stop`; each is answered with `done`, or with why not. When the pipe closes, the
# server is stopped and the folder removed: nothing of ours outlives the process that asked for it.
set -u
umask 077
folder=$1
[ -n "$2" ] && PATH=$2:$PATH
data=$folder/data
log=$folder/log
trap '' INT TERM HUP

stop() {
    [ ! -e "$data/postmaster.pid" ] || pg_ctl stop -s -w -m immediate -D "$data" </dev/null >>"$log" 2>&1
}

create() {
    mkdir "$folder" &&
        initdb -D "$data" -U postgres -A trust --no-sync --no-instructions --wal-segsize=1 \
            -E UTF8 --locale=C.UTF-8 </dev/null >"$log" 2>&1 &&
        cat >>"$data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
unix_socket_permissions = 0777
fsync = off
full_page_writes = off
autovacuum = off
max_connections = 400
shared_buffers = 64MB
max_wal_size = 512MB
timezone = 'UTC'
log_timezone = 'UTC'
CONF
}

start() {
    [ -d "$data" ] || create || return 1
    pg_ctl start -s -w -t 60 -D "$data" -l "$log" </dev/null >>"$log" 2>&1
}

while read -r order; do
    case $order in start | stop) ;; *) echo "unknown order"; continue ;; esac
    if $order; then
        echo done
    else
        echo "failed: $(tail -n 3 "$log" 2>/dev/null | tr '\n' ' ')"
    fi
done
stop
rm -rf -- "$folder"
