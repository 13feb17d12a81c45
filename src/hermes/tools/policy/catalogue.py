"""The programs we know, and what each does. Data only: a line per kind, names beside it; extend it here.

`PROGRAMS` says what a program does. `SUBCOMMANDS` says it by its subcommand: `a+b` is two words, `*` any other, `@`
none. `OPTIONS` says what an option adds, whatever the rest. The kinds are those of `effects.KINDS`.
"""

import re
from functools import cache

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

SUBCOMMANDS = """
getent: read passwd group services protocols networks ethers shells aliases rpc
getent: network *
hash  : read @ -r -l -t
hash  : environment *
hostnamectl: read @ status hostname --static --json
hostnamectl: system *
openssl: read version x509 verify dgst rand asn1parse crl req+-noout ciphers
openssl: read md5 sha256 sha1 list speed prime errstr help
openssl: network s_client s_server ocsp ts
openssl: secrets *
hostname: read @ -f -i -I -s -d --fqdn --short
hostname: system *
ifconfig: read @ -a
ifconfig: system *
mount : read @ -l
mount : devices *
route : read @ -n
route : system *
arp   : read @ -a -n
arp   : system *
alias : read @ -p
alias : environment *
losetup: read @ -a -l --list
losetup: devices *
swapon: read @ -s --show
swapon: devices *
nmcli : read @ device+status general+status connection+show
nmcli : system *
twine : work check
twine : publishes *
pip-compile: network *
ansible-lint: work *
strace: work *
ltrace: work *
npm   : packages install i ci add in ins update up upgrade uninstall remove rm un unlink link ln dedupe ddp rebuild
npm   : packages audit+fix init create shrinkwrap prune cache set config+set config+delete config+edit install-test it
npm   : publishes publish unpublish deprecate dist-tag owner access token adduser
npm   : publishes login logout org team hook star profile
npm   : lookup outdated view info show v search audit ping whoami fund doctor
npm   : read ls list ll la root prefix bin explain why query version+ config+get config+list config+ls get help diff
npm   : work run run-script rum urn test t tst start stop restart pack exec x version cache+verify pkg *
yarn  : packages add install remove up upgrade upgrade-interactive dlx link unlink import global create set init
yarn  : packages @
yarn  : publishes publish npm login logout owner tag
yarn  : network outdated info audit
yarn  : read list why bin config+get config+list versions licenses workspaces+list workspaces+info help
yarn  : work run test start build lint format dev exec node workspace workspaces pack version typecheck check tsc *
pnpm  : packages add install i update up remove rm uninstall un link unlink dlx import create fetch rebuild prune env
pnpm  : packages setup patch init store self-update deploy ci
pnpm  : publishes publish login logout
pnpm  : network outdated audit view
pnpm  : read list ls ll why root bin licenses help
pnpm  : work run test t start exec x build lint format dev pack typecheck check recursive r m multi *
bun   : packages add install i remove rm update link unlink create init upgrade x pm patch
bun   : publishes publish
bun   : network outdated
bun   : work run test build *
deno  : packages install add uninstall upgrade jupyter
deno  : publishes publish deploy
deno  : work run test fmt lint check task bench compile doc coverage cache eval
deno  : read info types
pip   : packages install uninstall download wheel config+set config+unset config+edit cache+purge cache+remove *
pip   : lookup index search list+--outdated
pip   : read list show freeze check inspect debug help hash cache+dir cache+info cache+list config+list config+get
uv    : packages add remove sync lock pip+install pip+uninstall pip+sync tool python self cache pip+compile init
uv    : packages *
uv    : publishes publish auth
uv    : read tree version help pip+list pip+show pip+freeze pip+check pip+tree python+list python+find tool+list
uv    : work run venv build export format
poetry: packages add install remove update lock self init new sync *
poetry: publishes publish
poetry: read show check env+info env+list version about help config+--list
poetry: work run build export shell
pdm   : packages add install remove update lock sync init self cache *
pdm   : publishes publish
pdm   : read list info show
pdm   : work run build export test lint
pipenv: packages install uninstall lock update sync upgrade clean *
pipenv: read graph check verify --venv --where
pipenv: work run shell
hatch : work run test fmt build version env+create *
hatch : publishes publish
hatch : work env+show status dep+show
hatch : packages new env+remove env+prune self python
pipx  : packages install uninstall upgrade inject reinstall uninject ensurepath upgrade-all *
pipx  : read list environment
pipx  : work run
conda : packages install remove update create env uninstall clean config init upgrade *
conda : read list info env+list search config+--show
conda : work run
flit  : work build
flit  : publishes publish
flit  : packages install
cargo : packages install uninstall add remove update search fetch generate-lockfile vendor self
cargo : publishes publish yank owner login logout
cargo : read metadata tree locate-project pkgid verify-project read-manifest version help --list
cargo : work build b check c test t run r bench doc d fmt clippy fix clean new init rustc rustdoc nextest expand miri
cargo : work watch llvm-cov tarpaulin deny audit machete udeps outdated package xtask hack insta make criterion asm *
rustup: read show which doc component+list target+list toolchain+list
rustup: work run
rustup: packages *
go    : work mod+tidy
go    : packages get install mod+download work+sync env+-w
go    : read version env list doc help mod+graph mod+why mod+verify tool+nm
go    : work build test vet run fmt generate clean mod tool work fix *
gradle: work *
gradle: publishes publish publishToMavenLocal uploadArchives publishPlugins
mvn   : work *
mvn   : publishes deploy deploy:deploy deploy:deploy-file release:perform release:prepare site:deploy
dotnet: packages add remove tool workload nuget+locals nuget+add nuget+remove new+install
dotnet: publishes nuget+push nuget+delete
dotnet: work build test run clean format publish pack new sln ef msbuild vstest watch restore *
dotnet: read list  --list-sdks --list-runtimes
dotnet: rewrites ef+database+drop
nuget : packages *
nuget : publishes push delete
bundle: packages install update add remove lock config init clean plugin pristine cache *
bundle: read list show info check outdated platform doctor licenses
bundle: work exec
gem   : packages *
gem   : publishes push yank owner signin
gem   : read list env environment which contents specification dependency
gem   : work build
composer: packages install require update remove create-project global self-update config init reinstall *
composer: read show info validate check-platform-reqs why depends licenses status suggests why-not
composer: work run run-script test dump-autoload dumpautoload exec lint
mix   : packages deps.get deps.update local.hex local.rebar archive.install deps.clean
mix   : publishes hex.publish hex.user
mix   : rewrites ecto.drop ecto.reset ecto.rollback
mix   : work *
rails : rewrites db:drop db:reset db:purge db:schema:load db:truncate_all db:migrate:reset
rails : work *
rake  : rewrites db:drop db:reset db:purge db:schema:load db:truncate_all db:migrate:reset
rake  : work *
artisan: rewrites migrate:fresh migrate:reset migrate:refresh db:wipe
artisan: work *
swift : work build test run package+dump-package package+describe package+init package+show-dependencies format *
swift : packages package+update package+resolve
pod   : packages *
pod   : read list env
pod   : publishes trunk
flutter: work analyze test build format clean run doctor gen-l10n create *
flutter: packages pub upgrade channel downgrade precache
flutter: read devices  --version
dart  : work analyze test format compile run fix create doc *
dart  : packages pub
stack : work build test run exec clean haddock ghci bench *
stack : packages install upgrade update setup
cabal : work build test run exec clean haddock repl bench check *
cabal : packages install update get
opam  : packages *
opam  : read list show env
opam  : work exec
julia : work *
terraform: read version providers show output state+list state+show graph validate
terraform: work fmt
terraform: cloud *
tofu  : read version show output validate graph
tofu  : work fmt
tofu  : cloud *
helm  : read version help dependency+list
helm  : work template lint create package
helm  : cloud *
kubectl: read version+--client kustomize
kubectl: cloud *
docker: read --version compose+version
docker: containers *
gh    : read --version version help completion
gh    : cloud *
systemctl: read status list-units list-unit-files list-timers list-sockets list-dependencies is-active is-enabled
systemctl: read is-failed show cat help get-default --version list-jobs is-system-running --failed
systemctl: services *
systemctl: power poweroff reboot halt kexec emergency rescue suspend hibernate soft-reboot
journalctl: read *
loginctl: read list-sessions show-session list-users show-user
loginctl: services *
loginctl: power poweroff reboot halt suspend
launchctl: read list print
launchctl: persistence *
service: read --status-all
service: services *
crontab: read -l
crontab: persistence @ *
brew  : read list ls info deps uses config doctor --version --prefix --cellar leaves outdated home
brew  : packages *
apt   : read list show search policy depends rdepends changelog
apt   : packages *
apt-get: packages *
dpkg  : read -l -L -s -S --list --listfiles --status --search --get-selections --print-architecture -p
dpkg  : packages *
rpm   : read -q -qa -qi -ql -qf --query
rpm   : packages *
pacman: read -Q -Qi -Ql -Qs -Si -Ss
pacman: packages *
snap  : read list info find version
snap  : packages *
nvm   : read ls list current which --version version
nvm   : environment use
nvm   : packages *
pyenv : read versions version which root prefix
pyenv : work local shell exec
pyenv : packages *
rbenv : read versions version which
rbenv : work local exec
rbenv : packages *
asdf  : read list current where which
asdf  : packages *
mise  : read ls current where which doctor
mise  : work run exec x
mise  : packages *
ip    : read addr address a link route r -4 -6 neigh -br -o rule -c
ip    : system link+set link+add link+del link+delete route+add route+del route+replace route+change route+flush
ip    : system addr+add addr+del addr+flush address+add address+del address+flush a+add a+del
ip    : system r+add r+del rule+add rule+del
ip    : system neigh+add neigh+del neigh+flush -4+set -4+add -4+del -6+set -6+add -6+del -6+flush
ip    : system *
sysctl: read -a -n --all
sysctl: system *
timedatectl: read status show list-timezones
timedatectl: system *
ufw   : read status
ufw   : security *
nft   : read list
nft   : security *
iptables: read -L -S --list
iptables: security *
xattr : read -l -p
xattr : security *
tmux  : read ls list-sessions list-windows list-panes display-message capture-pane -V
tmux  : session *
screen: read -ls -list
screen: session *
ssh-keygen: read -l -lf -F -lv
ssh-keygen: secrets *
ssh-add: read -l -L
ssh-add: secrets *
gpg   : read --version --verify --list-keys -k --fingerprint
gpg   : secrets *
docker-compose: read version
docker-compose: containers *
nix   : read flake+metadata why-depends
nix   : work flake+show eval search build develop fmt run shell flake+check log
nix   : packages *
nix-build: work *
nix-shell: work *
svn   : read status st diff log info blame
svn   : network *
hg    : read status st diff log summary branch branches tags heads annotate
hg    : work add commit ci mv bookmark
hg    : rewrites strip update+-C revert rollback purge histedit
hg    : network pull push incoming outgoing clone
jj    : read status st log diff show op+log
jj    : work new commit describe squash edit bookmark rebase split
jj    : rewrites abandon restore undo op+restore
jj    : network git
ollama: read list ps show --version
ollama: network *
playwright: packages install install-deps
playwright: work test show-report codegen *
cypress: packages install
cypress: work *
prisma: work generate format validate migrate+diff
prisma: rewrites migrate+reset db+push migrate+dev
prisma: database *
alembic: work current history heads show branches check revision init upgrade merge stamp
alembic: rewrites downgrade
flask : work run routes shell db+migrate db+upgrade *
flask : rewrites db+downgrade
dvc   : read status diff dag list
dvc   : work repro add exp run commit
dvc   : network *
dbt   : work compile parse ls docs+generate
dbt   : database *
pre-commit: work run validate-config validate-manifest sample-config
pre-commit: persistence install uninstall init-templatedir
pre-commit: packages autoupdate gc install-hooks *
husky : persistence *
lefthook: work run
lefthook: persistence *
jupyter: work nbconvert
jupyter: read --version kernelspec+list --paths
jupyter: listens *
git-lfs: network *
hdiutil: devices *
diskutil: read list info
diskutil: devices *
defaults: read read domains find
defaults: persistence *
update-alternatives: read --list --display --query
update-alternatives: system *
kind  : read get version
kind  : containers *
minikube: read status version
minikube: containers *
foundryup: packages *
forge : work build test fmt coverage snapshot inspect *
forge : publishes create script
forge : packages install update remove
hardhat: work compile test clean *
direnv: read status
direnv: persistence allow permit grant edit hook deny *
direnv: work exec
volta : read list which
volta : packages *
rustc : work *
certbot: read certificates
certbot: secrets *
lxc   : read list info
lxc   : containers *
nvidia-smi: read *
supervisorctl: read status
supervisorctl: services *
pm2   : read list ls status show logs
pm2   : services *
"""

OPTIONS = """
split: runs --filter
7z 7za 7zr: destroys -sdel
install: runs --strip-program
strace ltrace: spies -p --attach
make gmake: runs --eval -E
tar bsdtar: destroys --remove-files
tar bsdtar: runs --to-command --checkpoint-action --use-compress-program -I
tar bsdtar: runs --rsh-command --info-script --new-volume-script -F
tar bsdtar: system -P --absolute-names
rsync: destroys --delete --delete-before --delete-after --delete-during --delete-excluded --del --remove-source-files
rsync: runs -e --rsh --rsync-path
zip 7z: destroys -m --move
zip: runs -T -TT --unzip-command
unzip 7z: runs --to-command
rg: runs --pre --hostname-bin
fd fdfind: runs -x --exec -X --exec-batch
sort: runs --compress-program
bat batcat: runs --pager
less more man: runs -P --pager -H
ss lsof: processes -K --kill -k
fuser: processes -k --kill -K
journalctl: history --vacuum-size --vacuum-time --vacuum-files --rotate --flush --relinquish-var --sync --setup-keys
date: system -s --set
pip: packages --index-url -i --extra-index-url --trusted-host -f --find-links --target -t --prefix --user
npm pnpm yarn: network --registry
npm yarn pnpm: system -g --global
cargo: publishes --token
git: runs --upload-pack --receive-pack --exec-path --ext-diff --open-files-in-pager
gcc g++ cc clang clang++: runs -wrapper -fplugin
go: runs -exec -toolexec
java: runs -javaagent -agentpath -agentlib
mvn gradle gradlew: runs -I --init-script
pytest: runs
ps: spies
stty: session -F --file
nl: read -x
yq: work -i --inplace --in-place
dmesg: history -C -c --clear --read-clear
crontab: persistence -r -e -i
env: runs -S
jest: work -u
ffmpeg: spies x11grab avfoundation
chrome chromium google-chrome firefox: session *
gh: secrets auth token
"""

BUNDLING = frozenset(("zip", "fuser", "ss", "dmesg", "crontab", "date"))
"""Programs whose short options are often written together."""
PERSONAL = frozenset(("deploy", "publish", "release", "install", "uninstall", "destroy", "teardown", "push", "upload"))
"""Names of targets and scripts that reach beyond the workspace, by what people call them."""
TASK_RUNNERS = frozenset(
    ("make", "gmake", "ninja", "just", "task", "rake", "mage", "invoke", "inv", "npm", "yarn", "pnpm")
)


@cache
def programs() -> dict[str, str]:
    """What each program does."""
    found: dict[str, str] = {}
    for kind, names in _lines(PROGRAMS):
        for name in names.split():
            found.setdefault(name, kind)
    return found


@cache
def subcommands() -> dict[str, dict[tuple[str, ...], str]]:
    """What each subcommand of a program does."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for name, rest in _lines(SUBCOMMANDS):
        kind, _, phrases = rest.partition(" ")
        table = found.setdefault(name, {})
        for phrase in phrases.split():
            table[tuple(part for part in phrase.split("+") if part)] = kind
    return found


@cache
def options() -> dict[str, dict[str, str]]:
    """What options add."""
    found: dict[str, dict[str, str]] = {}
    for names, rest in _lines(OPTIONS):
        kind, _, signs = rest.partition(" ")
        for name in names.split():
            found.setdefault(name, {}).update(dict.fromkeys(signs.split(), kind))
    return found


def _lines(table: str) -> list[tuple[str, str]]:
    return [
        (left.strip(), right.strip())
        for left, _, right in (re.split("(:) ", line, maxsplit=1) for line in _rows(table))
    ]


def _rows(table: str) -> list[str]:
    return [re.sub(r"^([\w. -]*?)\s*:\s", r"\1: ", line) for line in table.strip().splitlines()]
