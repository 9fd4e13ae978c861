//! Whose code it is, and how its file is shown. Pure: all it knows is in [`Layout`].
//!
//! The longest known path that holds the file decides. A file that lies nowhere known (made by `exec`, say) belongs to whom its module belongs.
//! Plugins that are installed after the session began are known by their place: Endstone installs wheels under `plugins/.local`, where
//! plugins' packages are called `endstone_<name>`.

use super::layout::Layout;
use super::objects::Keep;
use super::paths::{has_separator, last_part, shortest, without_paths};
use super::text::presentable;
use crate::limits::CODE_TEXT_CHARS;
use crate::model::Category;

/// What is found out about one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) category: Category,
    pub(super) plugin: Option<String>,
    /// The file as it may be shown, never an absolute path.
    pub(super) shown: String,
}

/// The part of `file` below `folder`, or all of its last part when they are the same.
fn below<'a>(file: &'a str, folder: &str) -> Option<&'a str> {
    let rest = file.strip_prefix(folder.trim_end_matches('/'))?;
    if rest.is_empty() {
        Some("")
    } else {
        rest.strip_prefix('/')
    }
}

/// The name of a plugin whose wheel Endstone installed: what follows `endstone_` in `.../plugins/.local/.../site-packages/endstone_<name>/...`.
fn installed_plugin(file: &str) -> Option<&str> {
    let (_, local) = file.split_once("plugins/.local/")?;
    let (_, package) = local.split_once("site-packages/endstone_")?;
    let name = package.split(['/', '.']).next()?;
    (!name.is_empty()).then_some(name)
}

fn is_path(file: &str) -> bool {
    has_separator(file) && !file.starts_with('<')
}

impl Layout {
    /// Whose code `file` is, of a module called `module`.
    pub(super) fn classify(&self, module: &str, file: &str) -> Place {
        let (category, plugin) = self.owner(module, file);
        Place {
            category,
            plugin,
            shown: presentable(&self.shown(file), CODE_TEXT_CHARS, Keep::End),
        }
    }

    fn owner(&self, module: &str, file: &str) -> (Category, Option<String>) {
        if file.starts_with("<frozen ") {
            return (Category::StandardLibrary, None);
        }
        if is_path(file) {
            if let Some(owner) = self.owner_by_path(file) {
                return owner;
            }
            if file.contains("/site-packages/") || file.contains("/dist-packages/") {
                return (Category::Dependency, None);
            }
            if file.starts_with('/') {
                return (Category::Unknown, None);
            }
        }
        self.owner_by_module(module)
    }

    fn owner_by_path(&self, file: &str) -> Option<(Category, Option<String>)> {
        let of_plugins = self.plugins.iter().flat_map(|plugin| {
            let name = Some(plugin.name.as_str());
            plugin.paths.iter().map(move |path| (path, Category::Plugin, name))
        });
        let of_others = [
            (&self.endstone, Category::Endstone),
            (&self.stdlib, Category::StandardLibrary),
            (&self.site, Category::Dependency),
        ];
        let of_others = of_others
            .into_iter()
            .flat_map(|(paths, category)| paths.iter().map(move |path| (path, category, None)));
        let nearest = of_plugins
            .chain(of_others)
            .filter(|(path, ..)| below(file, path).is_some())
            .max_by_key(|(path, ..)| path.trim_end_matches('/').len())
            .map(|(_, category, plugin)| (category, plugin));
        let owner = match nearest {
            // The folder is known, what lies in it need not be.
            Some((Category::Dependency, _)) | None => match installed_plugin(file) {
                Some(name) => Some((Category::Plugin, Some(name))),
                None => nearest,
            },
            known => known,
        };
        owner.map(|(category, plugin)| (category, plugin.map(str::to_owned)))
    }

    fn owner_by_module(&self, module: &str) -> (Category, Option<String>) {
        let top = module.split('.').next().unwrap_or_default();
        let is_top = |name: &String| name == top;
        if let Some(plugin) = self.plugins.iter().find(|plugin| plugin.modules.iter().any(is_top)) {
            return (Category::Plugin, Some(plugin.name.clone()));
        }
        if top == "endstone" {
            (Category::Endstone, None)
        } else if self.stdlib_modules.iter().any(is_top) {
            (Category::StandardLibrary, None)
        } else {
            (Category::Unknown, None)
        }
    }

    /// The file from the folder on that says most to a reader.
    fn shown(&self, file: &str) -> String {
        if is_path(file) {
            without_paths(&self.shown_path(&shortest(file)))
        } else {
            without_paths(file)
        }
    }

    fn shown_path(&self, file: &str) -> String {
        for folder in ["site-packages", "dist-packages"] {
            if let Some((_, rest)) = file.rsplit_once(&format!("/{folder}/")) {
                return format!("{folder}/{rest}");
            }
        }
        if let Some((root, rest)) = longest(&self.stdlib, file) {
            return format!("{}/{rest}", last_part(root));
        }
        if let Some((_, rest)) = file.rsplit_once("/plugins/") {
            return format!("plugins/{rest}");
        }
        match longest(&self.site, file) {
            // Without the folder's own name, which may be a user's.
            Some((_, rest)) => rest.to_owned(),
            None if file.starts_with('/') => last_part(file).to_owned(),
            None => file.to_owned(),
        }
    }
}

/// The longest of these folders that holds the file, and the part of the file below it.
fn longest<'a>(folders: &'a [String], file: &'a str) -> Option<(&'a str, &'a str)> {
    let holding = folders.iter().filter_map(|folder| {
        let rest = below(file, folder).filter(|rest| !rest.is_empty())?;
        Some((folder.as_str(), rest))
    });
    holding.max_by_key(|(folder, _)| folder.len())
}

#[cfg(test)]
mod tests {
    use super::super::layout::PluginFiles;
    use super::*;
    use proptest::prelude::*;

    const LOCAL: &str = "/srv/bds/plugins/.local/lib/python3.13/site-packages";

    fn layout() -> Layout {
        Layout {
            threads_run_in_a_context: false,
            stdlib: vec!["/usr/lib/python3.13".to_owned(), "/usr/lib/python313.zip".to_owned()],
            stdlib_modules: vec!["json".to_owned(), "collections".to_owned()],
            site: vec![
                "/usr/lib/python3.13/site-packages".to_owned(),
                LOCAL.to_owned(),
                "/home/alice/libraries".to_owned(),
            ],
            endstone: vec!["/usr/lib/python3.13/site-packages/endstone".to_owned()],
            plugins: vec![PluginFiles {
                name: "shop_keeper".to_owned(),
                paths: vec![
                    format!("{LOCAL}/shop"),
                    format!("{LOCAL}/shop_util.py"),
                    "/home/dev/shop".to_owned(),
                ],
                modules: vec!["shop".to_owned(), "shop_util".to_owned()],
            }],
        }
    }

    fn placed(module: &str, file: &str) -> (Category, Option<String>, String) {
        let place = layout().classify(module, file);
        (place.category, place.plugin, place.shown)
    }

    fn plugin(name: &str, shown: &str) -> (Category, Option<String>, String) {
        (Category::Plugin, Some(name.to_owned()), shown.to_owned())
    }

    #[test]
    fn plugins_are_known_by_their_files() {
        assert_eq!(
            placed("shop.main", &format!("{LOCAL}/shop/main.py")),
            plugin("shop_keeper", "site-packages/shop/main.py")
        );
        assert_eq!(
            placed("shop_util", &format!("{LOCAL}/shop_util.py")),
            plugin("shop_keeper", "site-packages/shop_util.py")
        );
        assert_eq!(placed("shop.x", "/home/dev/shop/x.py"), plugin("shop_keeper", "x.py"));
        assert_eq!(placed("shops", "/home/dev/shops/x.py").0, Category::Unknown);
    }

    #[test]
    fn a_plugin_installed_later_is_known_by_its_place() {
        assert_eq!(
            placed("endstone_arena.main", &format!("{LOCAL}/endstone_arena/main.py")),
            plugin("arena", "site-packages/endstone_arena/main.py")
        );
        assert_eq!(
            placed("aiohttp.web", &format!("{LOCAL}/aiohttp/web.py")).0,
            Category::Dependency
        );
    }

    #[test]
    fn the_rest_is_told_apart() {
        let standard = |shown: &str| (Category::StandardLibrary, None, shown.to_owned());
        assert_eq!(
            placed("json.decoder", "/usr/lib/python3.13/json/decoder.py"),
            standard("python3.13/json/decoder.py")
        );
        assert_eq!(
            placed("json.decoder", "/usr/lib/python313.zip/json/decoder.py"),
            standard("python313.zip/json/decoder.py")
        );
        assert_eq!(
            placed("importlib", "<frozen importlib._bootstrap>"),
            standard("<frozen importlib._bootstrap>")
        );
        assert_eq!(
            placed(
                "endstone.plugin",
                "/usr/lib/python3.13/site-packages/endstone/plugin/__init__.py"
            ),
            (
                Category::Endstone,
                None,
                "site-packages/endstone/plugin/__init__.py".to_owned()
            )
        );
        assert_eq!(
            placed("yarl", "/usr/lib/python3.13/site-packages/yarl/_url.py"),
            (Category::Dependency, None, "site-packages/yarl/_url.py".to_owned())
        );
        assert_eq!(
            placed("__main__", "/srv/secret/script.py"),
            (Category::Unknown, None, "script.py".to_owned())
        );
    }

    #[test]
    fn code_without_a_file_belongs_to_its_modules_owner() {
        assert_eq!(placed("shop.main", "<string>"), plugin("shop_keeper", "<string>"));
        assert_eq!(placed("collections", "<string>").0, Category::StandardLibrary);
        assert_eq!(placed("endstone.event", "").0, Category::Endstone);
        assert_eq!(placed("", "<string>").0, Category::Unknown);
    }

    #[test]
    fn files_show_what_says_most_and_no_path() {
        for (file, shown) in [
            ("<template /srv/bds/page.html>", "<template page.html>"),
            ("/usr/lib/python3.13/site-packages/../../../../home/alice/x.py", "x.py"),
            ("/srv/bds/plugins/../../../home/alice/x.py", "x.py"),
            ("/usr/lib/python3.13/../../../home/alice/x.py", "x.py"),
            ("file:///home/alice/x.py", "x.py"),
            ("https://host/home/alice/x.py", "x.py"),
            (r"C:\Users\alice\x.py", "x.py"),
            (r"\\host\home\alice\x.py", "x.py"),
            ("~/x.py", "x.py"),
            ("../home/alice/x.py", "x.py"),
            ("…ce/secret/x.py", "x.py"),
            ("template /home/alice/x.html", "template x.html"),
            ("/home/alice", "~"),
            ("pages/x.py", "pages/x.py"),
            ("./pages/x.py", "pages/x.py"),
            ("/home/alice/libraries/borrowed/x.py", "borrowed/x.py"),
            ("/srv/bds/plugins/shop/x.py", "plugins/shop/x.py"),
        ] {
            assert_eq!(placed("m", file).2, shown, "{file}");
        }
    }

    #[test]
    fn a_folder_of_libraries_holds_dependencies() {
        let placed = placed("borrowed", "/home/alice/libraries/borrowed/x.py");
        assert_eq!(placed.0, Category::Dependency);
    }

    proptest! {
        #[test]
        fn no_absolute_path_is_ever_shown(
            parts in prop::collection::vec("[a-z.]{1,8}|site-packages|plugins|\\.local|\\.\\.", 1..9),
            separator in r"/|//|\\|/\./",
            scheme in "([a-z]{1,4}://)?",
        ) {
            // `plugins` and `site-packages` may stand before the home folder, but not lead into it.
            let path = format!("{}{separator}..{separator}..", parts.join(&separator));
            let home = ["home", "alice", "x.py"].join(&separator);
            let out = "..".to_owned() + &separator;
            let shown = layout().classify("m", &format!("{scheme}{separator}{path}{separator}{}{home}", out.repeat(9))).shown;
            prop_assert!(!shown.starts_with('/') && !shown.contains("alice") && !shown.contains("home"), "{}", shown);
        }
    }
}
