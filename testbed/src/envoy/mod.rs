//! An Envoy process, from its start to its end.

mod binary;
mod bootstrap;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

pub use binary::{crashing_module, module};
pub use bootstrap::{Bootstrap, at};

use crate::client::Client;
use crate::root;

/// Longest wait for anything that takes a second or two when the machine is idle.
const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(10);

/// A running Envoy; killed when dropped.
#[derive(Debug)]
pub struct Envoy {
    process: Mutex<Child>,
    folder: TempDir,
    admin: reqwest::Client,
    admin_address: SocketAddr,
    listener: SocketAddr,
}

impl Envoy {
    /// Starts Envoy and returns when it takes requests. The error has Envoy's log if it refused to start.
    pub async fn start(bootstrap: &Bootstrap) -> Result<Self> {
        Self::start_with(bootstrap, 2).await
    }

    /// The same with this number of worker threads.
    pub async fn start_with(bootstrap: &Bootstrap, workers: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let process = Mutex::new(spawn(bootstrap, &folder, &["--concurrency", &workers.to_string()])?);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let admin = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        let mut envoy = Self { process, folder, admin, admin_address: nowhere, listener: nowhere };
        envoy.admin_address = envoy.until("its admin address", async |envoy| envoy.read_admin_address()).await?;
        envoy.until("being ready", async |envoy| envoy.admin("ready").await.ok()).await?;
        envoy.listener = envoy.until("its listener", async |envoy| envoy.read_listener().await).await?;
        Ok(envoy)
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.listener
    }

    /// Its admin interface.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// A client of this Envoy.
    pub fn client(&self) -> Client {
        Client::new(self.listener)
    }

    /// A page of the admin interface.
    pub async fn admin(&self, page: &str) -> Result<String> {
        let url = format!("http://{}/{page}", self.admin_address);
        Ok(self.admin.get(url).send().await?.error_for_status()?.text().await?)
    }

    /// Shows the log of the picker from this level on, such as `debug`.
    pub async fn show_log_from(&self, level: &str) -> Result<()> {
        let url = format!("http://{}/logging?wasm={level}", self.admin_address);
        self.admin.post(url).send().await?.error_for_status()?;
        Ok(())
    }

    /// A counter or gauge; zero while it is not defined.
    pub async fn stat(&self, name: &str) -> Result<u64> {
        let page = self.admin(&format!("stats?filter=^{}$", name.replace('.', "\\."))).await?;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map_or(Ok(0), |value| value.trim().parse().with_context(|| format!("{name} is {value}")))
    }

    /// A counter or gauge of the filter itself, by the name it has there.
    pub async fn picker_stat(&self, name: &str) -> Result<u64> {
        self.stat(&format!("wasmcustom.endpoint_picker_{name}")).await
    }

    /// Waits until a counter or gauge of the filter is at least `least`.
    pub async fn picker_stat_reaches(&self, name: &str, least: u64) -> Result<()> {
        let reached = async |envoy: &Self| (envoy.picker_stat(name).await.ok()? >= least).then_some(());
        self.until(&format!("{name} of {least}"), reached).await
    }

    /// All that Envoy has logged so far; bytes that are not UTF-8 are replaced.
    pub fn log(&self) -> String {
        read(&self.folder, "envoy.log")
    }

    /// One line per finished request. Envoy writes it in batches, up to a tenth of a second late.
    pub fn access_log(&self) -> String {
        read(&self.folder, "access.log")
    }

    /// Waits until `probe` gives something, or the process ends, or it takes too long.
    pub async fn until<T>(&self, what: &str, probe: impl AsyncFn(&Self) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = probe(self).await {
                return Ok(found);
            }
            if !self.alive() || Instant::now() > deadline {
                bail!("Envoy did not reach {what}; its log:\n{}", self.log());
            }
            sleep(POLL).await;
        }
    }

    fn alive(&self) -> bool {
        self.process.lock().is_ok_and(|mut process| matches!(process.try_wait(), Ok(None)))
    }

    fn read_admin_address(&self) -> Option<SocketAddr> {
        fs::read_to_string(self.folder.path().join("admin")).ok()?.trim().parse().ok()
    }

    async fn read_listener(&self) -> Option<SocketAddr> {
        let page: Value = serde_json::from_str(&self.admin("listeners?format=json").await.ok()?).ok()?;
        let address = page.pointer("/listener_statuses/0/local_address/socket_address")?;
        format!("{}:{}", address.get("address")?.as_str()?, address.get("port_value")?).parse().ok()
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        // It may have ended by itself.
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// What `envoy --mode validate` says of a configuration; an error if it refuses.
pub fn validate(bootstrap: &Bootstrap) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let status = spawn(bootstrap, &folder, &["--mode", "validate"])?.wait()?;
    let log = read(&folder, "envoy.log") + &read(&folder, "access.log");
    if status.success() { Ok(log) } else { bail!("{log}") }
}

fn spawn(bootstrap: &Bootstrap, folder: &TempDir, options: &[&str]) -> Result<Child> {
    let path = |name: &str| folder.path().join(name);
    fs::write(path("envoy.json"), bootstrap.to_string())?;
    Command::new(binary::envoy()?)
        // The shipped configuration names the module by its path from here.
        .current_dir(root())
        .arg("--config-path")
        .arg(path("envoy.json"))
        .arg("--admin-address-path")
        .arg(path("admin"))
        .args(["--log-level", "warning", "--component-log-level", "wasm:info", "--disable-hot-restart"])
        .args(["--file-flush-interval-msec", "100"])
        .args(options)
        .stdin(Stdio::null())
        .stdout(File::create(path("access.log"))?)
        .stderr(File::create(path("envoy.log"))?)
        .spawn()
        .context("starting Envoy")
}

fn read(folder: &TempDir, name: &str) -> String {
    String::from_utf8_lossy(&fs::read(folder.path().join(name)).unwrap_or_default()).into_owned()
}
