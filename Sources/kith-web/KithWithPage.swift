import KithCommands
import KithWeb

/// The tool with the page of `kith web`; its code is in KithWeb.
@main
enum KithWithPage {
  static func main() async {
    KithTool.prepareDispatch()
    await KithTool.main(page: { PageServer($0) })
  }
}
