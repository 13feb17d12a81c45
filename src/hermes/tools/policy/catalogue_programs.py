"""The programs we know, and what each does. Data only: the kind of effect, then names; extend it here."""

PROGRAMS = """
read      : pg_isready dmesg figlet cowsay toilet ggrep ghead gdate gls locate plocate zdiff xzgrep bzgrep
read      : true false test [ ls dir vdir cat tac nl head tail wc pwd basename dirname realpath readlink stat file
read      : du df free uptime uname arch nproc lscpu lsblk lsusb lspci lsmem whoami id groups users who w tty hostid
read      : date cal sleep seq yes factor expr bc dc numfmt which whereis type whatis man apropos info help tldr
read      : echo printf grep egrep fgrep zgrep rg ag ack cut paste join comm uniq tr fold fmt column expand
read      : unexpand rev shuf tsort od xxd hexdump hd strings cmp diff diff3 colordiff sdiff md5sum sha1sum sha224sum
read      : sha256sum sha384sum sha512sum b2sum b3sum cksum sum shasum md5 base32 jq yq gron fx xq htmlq pup
read      : tree exa eza lsd broot bat batcat less more most zcat bzcat xzcat zstdcat zless ps pgrep pidof pstree top
read      : htop vmstat iostat mpstat sar lsof fuser ss netstat printenv locale getconf lsb_release
read      : nm size readelf objdump addr2line c++filt otool dwarfdump cloc tokei scc loc wait jobs getopts
read      : set shift return exit break continue : local read mapfile readarray let cd pushd popd dirs unset readonly
read      : declare typeset export groups times ulimit umask tput uuidgen stty reset clear namei pathchk
read      : zipinfo lsattr getfacl last lastlog ncal logname fd fdfind fzf mdls otool sw_vers system_profiler
read      : identify ffprobe exiftool mediainfo pdfinfo pdftotext xmllint xpath csvlook csvcut csvstat csvgrep mlr
read      : glow mdcat pygmentize tldr cheat iconv uconv chardetect uuencode look ts pv
read      : dpkg-query apt-cache jot lsmod modinfo cpuid lshw inxi neofetch fastfetch
read      :  caller compgen complete actionlint hadolint shellcheck yamllint
read      : markdownlint vale codespell typos gitleaks trufflehog detect-secrets
work      : http-server serve json-server live-server wasm-opt wat2wasm wasmtime wasmer xmlstarlet tidy html2text ionic
work      : cordova react-native expo 2to3 sqlite-utils csvtool hyperfine concurrently strace ltrace ldd alembic
network   : pip-audit safety npm-check npm-check-updates ncu cargo-outdated
work      : mkdir touch mktemp tee split csplit zip unzip gzip gunzip
work      : bzip2 bunzip2 xz unxz zstd unzstd lz4 brotli 7z 7za
work      : 7zr unrar ar ranlib strip patch dos2unix unix2dos sort base64 envsubst m4 sponge install pandoc
work      : make gmake cmake ctest cpack ninja meson bazel bazelisk buck2 scons waf xmake premake5 autoconf automake
work      : autoreconf libtool libtoolize aclocal autoheader configure pkg-config ccache sccache distcc bear
work      : gcc g++ cc c++ clang clang++ cpp ld lld gold as nasm yasm clang-format clang-tidy clangd cppcheck iwyu
work      : gcov lcov genhtml gcovr valgrind nvcc ispc rustc rustfmt rustdoc rust-analyzer cargo-clippy cargo-fmt
work      : trunk wasm-pack wasm-bindgen cross just task mage tup redo ant gradlew mvnw sbt mill lein
work      : javap
work      : javac java jar javadoc jshell kotlinc kotlin ktlint detekt scalac scala scalafmt groovy groovyc checkstyle
work      : spotbugs pmd google-java-format gofmt goimports gofumpt golangci-lint staticcheck golint govulncheck
work      : gotestsum ginkgo mockgen stringer wire air dlv templ sqlc buf protoc flatc capnp thrift
work      : tsc tsx ts-node eslint prettier biome oxlint dprint standard xo stylelint htmlhint jest vitest mocha ava tap
work      : tape jasmine karma cypress playwright webpack rollup parcel esbuild swc babel vite next nuxt gatsby astro
work      : remix svelte-kit svelte-check vue-tsc ng nx turbo lerna rush gulp grunt storybook nodemon
work      : concurrently npm-run-all run-s run-p tailwindcss postcss sass node-sass lessc uglifyjs terser
work      : typedoc jsdoc c8 nyc depcheck madge knip size-limit lint-staged commitlint commitizen cz
work      : changeset api-extractor rescript elm elm-test purs spago quicktype openapi-generator
work      : uvicorn gunicorn hypercorn celery streamlit scrapy gradle mvn swift dart flutter mix dotnet cargo go hatch
work      : pytest py.test unittest nose2 tox nox coverage mypy pyright pyrefly ty pytype pyre ruff black isort flake8
work      : pylint pycodestyle pydocstyle autopep8 autoflake yapf bandit vulture radon pyflakes pyupgrade interrogate
work      : sphinx-build sphinx-apidoc sphinx-autobuild mkdocs pdoc pydoc jupyter ipython nbconvert jupytext papermill
work      : cython cythonize f2py maturin pyinstaller cibuildwheel build pre-commit invoke inv doit snakemake
work      : django-admin alembic flask kedro hypothesis
work      : rspec rubocop rake minitest cucumber erb standardrb brakeman reek sorbet srb steep irb rails
work      : phpunit phpstan psalm php-cs-fixer phpcs phpcbf pest rector artisan
work      :  msbuild csc fsc xbuild nunit3-console swiftc swiftlint swiftformat xcodebuild
work      : xctool iex elixir elixirc erl erlc rebar3 gleam
work      : ghc ghci runghc runhaskell cabal stack hlint ormolu fourmolu stylish-haskell ocaml ocamlc ocamlopt dune
work      : ocamlformat zig zls nim crystal v vlang odin dmd ldc2 dub julia Rscript R lintr
work      : perltidy perlcritic prove luac luacheck stylua busted racket raco sbcl clisp guile chez
work      : latexmk pdflatex xelatex lualatex bibtex biber typst asciidoctor rst2html hugo jekyll eleventy zola
work      : mdbook docusaurus vuepress vitepress gatsby-cli dot neato plantuml mermaid mmdc drawio graphviz
work      : convert magick mogrify ffmpeg sox inkscape rsvg-convert optipng pngquant jpegoptim cwebp svgo gifsicle
work      : gdb lldb rr gprof flamegraph tcc emcc emmake emcmake
work      : verilator iverilog yosys ghdl solc hardhat anchor
work      : sqlfluff sqlfmt pgformatter gqlgen graphql-codegen knex sequelize typeorm
work      : cargo-nextest cargo-watch cargo-expand bacon typeshare cbindgen bindgen swig pybind11-config
work      : helm-docs kubeval kubeconform kustomize tflint tfsec checkov terrascan terraform-docs conftest opa jsonnet
work      : cue dhall nickel nixfmt alejandra statix treefmt shfmt bats shellspec kcov dos2ansi
work      : bump2version bumpversion towncrier git-cliff conventional-changelog
work      :  msgfmt xgettext msgmerge gettext intltool itstool glib-compile-resources moc uic rcc qmake
work      : diff-so-fancy delta difft difftastic wdiff patchutils filterdiff interdiff code2prompt repomix ctags etags
work      : cscope universal-ctags doxygen gtags global csvkit csvsql csvjson in2csv xsv qsv datamash miller
work      :  pyclean schemathesis
network   : curl wget aria2c axel lftp ftp tftp ncftp http https httpie xh curlie hurl w3m lynx links elinks
network   : telnet whois dig nslookup host drill traceroute tracepath mtr nmap masscan zmap ping6 arping fping
network   : grpcurl websocat wscat yt-dlp youtube-dl gdown kaggle huggingface-cli hf speedtest speedtest-cli
network   : svn hg bzr cvs fossil p4 repo ollama k6 ab wrk vegeta locust newman artillery siege
sends     : nc ncat netcat socat nping hping3 cryptcat rclone s3cmd s3fs gsutil mc croc wormhole magic-wormhole
sends     : transfer ffsend ngrok cloudflared localtunnel lt bore frpc chisel ligolo tor torify proxychains
sends     : proxychains4 sshuttle autossh tailscale zerotier-cli wg wg-quick openvpn ipfs
remote    : ssh scp sftp mosh rsh rlogin rexec pssh parallel-ssh ansible ansible-playbook salt puppet chef-client knife
remote    : fab cap ssh-copy-id sshpass et winrm evil-winrm psexec.py impacket-psexec pwsh powershell
mail      : mail mailx mutt sendmail swaks msmtp ssmtp mutt neomutt write wall mesg talk telegram-send slack-cli
packages  : apt apt-get aptitude yum dnf zypper pacman yay paru apk emerge brew port snap flatpak nix-env nix-channel
packages  : easy_install gem cpan cpanm luarocks opam tlmgr choco winget scoop pkg pkgin xbps-install eopkg
packages  : conda-env mamba micromamba rustup nvm fnm volta asdf mise rtx pyenv rbenv jenv sdk sdkman goenv tfenv ghcup
packages  : bower jspm nimble shards paket vcpkg conan carton cpm equo guix swupd rpm dpkg dpkg-deb alien
publishes : twine vsce ovsx fastlane semantic-release release-please goreleaser np release-it
cloud     : aws aws-vault gcloud bq gsutil az azcopy doctl linode-cli hcloud scw ibmcloud oci aliyun tccli yc vultr-cli
cloud     : heroku fly flyctl vercel netlify now railway render surge wrangler firebase amplify sls serverless sam cdk
cloud     : eb copilot pulumi terraform tofu terragrunt packer vagrant kubectl oc helm helmfile eksctl kops kubeadm k3s
cloud     : k9s kubectx kubens istioctl linkerd argocd flux velero consul nomad boundary crossplane minikube kind k3d
cloud     : rke rancher dapr tkn skaffold tilt okteto gh glab hub tea jira databricks snowsql stripe twilio supabase
cloud     : convex planetscale pscale turso neonctl upstash
cloud     : sentry-cli newrelic datadog-ci circleci travis buildkite-agent
cloud     : dropbox gdrive b2 backblaze-b2 restic borg duplicity duplicacy kopia
containers: docker podman nerdctl docker-compose podman-compose ctr crictl buildah skopeo lxc lxc-attach lxd incus
containers: multipass colima limactl lima nerdctl runc machinectl systemd-nspawn virsh virt-install qemu-img VBoxManage
containers: vmrun prlctl firecracker qemu-system-x86_64 img kaniko toolbox distrobox singularity apptainer
services  : service rc-service rc-update sv initctl chkconfig update-rc.d invoke-rc.d supervisorctl pm2 forever
services  : nginx apachectl apache2ctl httpd a2ensite a2dissite a2enmod caddy haproxy systemd-run launchctl loginctl
privilege : sudo sudoedit doas su pkexec runuser gosu su-exec setpriv capsh newgrp sg runas kexec
accounts  : useradd adduser userdel deluser usermod groupadd groupdel addgroup delgroup groupmod gpasswd passwd chpasswd
accounts  : chsh chfn visudo vipw vigr pwconv newusers chage
accounts  : htpasswd smbpasswd pdbedit ldapadd ldapmodify ldapdelete dscl
accounts  : samba-tool net rpcclient kadmin kinit dseditgroup sysadminctl
security  : iptables ip6tables iptables-restore nft ufw firewall-cmd pfctl ipset ebtables setenforce semanage setsebool
security  : aa-disable aa-complain aa-teardown apparmor_parser auditctl fail2ban-client csrutil spctl tccutil xattr
security  : mokutil update-ca-certificates trust certutil setcap chattr
security  : setfacl chcon auditd nvram authconfig pam-auth-update
security  : update-crypto-policies modprobe insmod rmmod kmod depmod dkms bcdedit reg netsh sc vssadmin
persistence: crontab at batch anacron atd incrontab systemd-tmpfiles update-alternatives alternatives defaults
persistence: osascript automator schtasks wmic autostart dconf gsettings xdg-mime duti mimeopen
processes : kill pkill killall killall5 skill snice xkill renice tskill taskkill
devices   : fdisk cfdisk sfdisk gdisk sgdisk parted partprobe partx
devices   : kpartx losetup mount umount fusermount swapon swapoff
devices   : mkswap lvcreate lvremove lvresize lvreduce vgcreate vgremove vgreduce pvcreate pvremove pvresize mdadm
devices   : cryptsetup zpool zfs btrfs xfs_repair xfs_admin fsck e2fsck resize2fs tune2fs debugfs dumpe2fs fsfreeze
devices   : blkdiscard wipefs hdparm nvme sg_format smartctl badblocks mke2fs mkdosfs mkntfs diskutil hdiutil newfs
devices   : eject sgdisk testdisk photorec dmsetup multipath iscsiadm flashrom fwupdmgr efibootmgr grub-install
devices   : update-grub grub-mkconfig bootctl lilo dracut mkinitcpio update-initramfs dd_rescue ddrescue nbd-client
devices   : mknod losetup gpart tomb veracrypt format diskpart
system    : sysctl timedatectl hwclock localectl ldconfig ip ifconfig route arp brctl nmcli
system    : ethtool iw iwconfig rfkill tc bridge networksetup scutil systemsetup dmidecode cpupower tuned-adm swapctl
system    : logrotate depmod mandb updatedb locale-gen dpkg-reconfigure debconf-set-selections chroot nsenter unshare
system    : pivot_root switch_root softwareupdate pmset ntpdate chronyc quotaon setquota edquota
database  : psql mysql mariadb mysqladmin mysqldump mysqlimport mongosh mongo mongodump mongorestore mongoexport
database  : mongoimport redis-cli valkey-cli createdb dropdb createuser dropuser pg_dump pg_dumpall pg_restore pg_ctl
database  : pg_basebackup initdb vacuumdb reindexdb clickhouse clickhouse-client
database  : influx cqlsh nodetool sqlplus sqlcmd bcp
database  : cypher-shell arangosh couchdb-cli etcdctl zkCli.sh kafka-topics kafka-topics.sh kafka-configs rabbitmqctl
database  : rabbitmqadmin memcached-tool ksql trino presto hive beeline
database  : impala-shell hdfs hadoop spark-submit pgcli mycli
database  : usql neo4j-admin cockroach tidb elasticdump opensearch-cli solr influxd pgbench
destroys  : shred srm wipe scrub secure-delete sfill rmlint trash-empty bleachbit unlink
rewrites  : bfg git-filter-repo
secrets   : gpg gpg2 gpgconf pass gopass op bw lpass
secrets   : keepassxc-cli secret-tool security vault age sops ssh-keygen ssh-add
secrets   : ssh-agent keyctl chamber doppler infisical berglas credstash teller envchain aws-okta saml2aws kwallet-query
secrets   : hashcat john mimikatz secretsdump.py hydra medusa crackmapexec responder keychain dotenv-vault git-crypt
secrets   : gnome-keyring-daemon pass-otp oathtool ykman pkcs11-tool step certbot lego acme.sh
listens   : sshd vsftpd ftpd tftpd dnsmasq smbd nfsd ttyd gotty shellinabox code-server x11vnc vncserver
spies     : tcpdump tshark wireshark ngrep dsniff ettercap bettercap mitmproxy mitmdump gcore ptrace
spies     : bpftrace bpftool perf sysdig dtrace dtruss xinput xev screencapture scrot import gnome-screenshot
spies     : arecord parecord logkeys showkey gdbserver frida py-spy fatrace
editor    : vi vim nvim view ex ed emacs emacsclient nano pico micro joe mcedit helix hx kak code subl atom gedit kate
editor    : rvim vimdiff ne jed zed cursor windsurf idea pycharm
session   : screen tmux byobu dtach abduco zellij xdotool wmctrl ydotool xset xsetroot xrandr setxkbmap xmodmap xhost
session   : xauth open xdg-open gio start xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send zenity dbus-send
session   : gdbus busctl qdbus swaymsg i3-msg hyprctl chvt openvt reptyr loadkeys conspy
environment: alias unalias shopt enable disable bind logout
miner     : xmrig cpuminer minerd ethminer cgminer bfgminer t-rex nbminer lolMiner stress stress-ng
power     : shutdown reboot halt poweroff telinit
runs      : expect script tclsh wish gimp blender soffice libreoffice wine
runs      : codex claude aider gemini goose cline opencode hermes amp q copilot crush
"""
