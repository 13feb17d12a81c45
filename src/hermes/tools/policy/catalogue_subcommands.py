"""What programs do by their subcommand. Data only: `a+b` is two words, `*` any other, `@` none; extend it here."""

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
