"""Patterns, in other languages, of orders to drop instructions or to keep quiet.

A reading may lack accents. The rest of a word is part of the gap after it: `\\w*` before a gap would be tried at every
length.
"""

from hermes.text.translation import to_translate

# ruff: noqa: E501 - a pattern is harder to read in pieces than on a long line

_DROP = to_translate("an order to ignore other instructions")

LANGUAGES: tuple[tuple[str, bool, str], ...] = (
    (
        _DROP,
        True,
        r"\b(?:ignorier\w*|missacht\w*|vergiss|vergesst|vergessen sie|uberspring\w*|ubergeh\w*|verwirf)\b[^.!?\n]{0,60}\b(?:vorherig\w*|bisherig\w*|obig\w*|fruher\w*|vorig\w*|vorangegangen\w*|alle\w*|deine\w*|ihre|system\w*)\b[^.!?\n]{0,30}(?:anweisung\w*|instruktion\w*|befehl\w*|regeln|vorgaben|anordnung\w*|prompt\w*)",
    ),
    (
        _DROP,
        True,
        r"\b(?:ignor\w+|oubli\w+|neglig\w+|ne (?:tiens|tenez) pas compte|ne (?:suis|suivez) (?:pas|plus))\b[^.!?\n]{0,60}\b(?:instructions?|consignes?|directives?|ordres|regles)\b",
    ),
    (
        _DROP,
        True,
        r"\b(?:ignor\w+|olvid\w+|haz caso omiso|descart\w+|desestim\w+|no sigas)\b[^.!?\n]{0,60}\b(?:instruccion\w*|indicacion\w*|ordenes|reglas|directrices)\b",
    ),
    (
        _DROP,
        True,
        r"\b(?:ignor\w+|esquec\w+|desconsider\w+|descart\w+|desrespeit\w+)\b[^.!?\n]{0,60}\b(?:instruc\w+|orientac\w+|ordens|regras|diretrizes)\b",
    ),
    (
        _DROP,
        True,
        r"\b(?:ignora\w*|dimentica\w*|trascura\w*|scarta\w*|non seguire)\b[^.!?\n]{0,60}\b(?:istruzion\w+|indicazion\w+|ordini|regole|direttive)\b",
    ),
    (
        _DROP,
        True,
        r"\b(?:negeer|vergeet|sla)\b[^.!?\n]{0,60}\b(?:instructies|opdrachten|aanwijzingen|regels)\b",
    ),
    (
        _DROP,
        True,
        r"\b(?:zignoruj|ignoruj|zapomnij|pomin)\w*\b[^.!?\n]{0,60}\b(?:instrukcj\w+|polecen\w*|zasad\w*|wytyczn\w+)",
    ),
    (
        _DROP,
        True,
        r"(?:игнорир|проигнорир|забуд|отбрось|не обращаи внимания|не следуи)[^.!?\n]{0,80}(?:инструкц\w*|указан\w*|правил\w*|команд\w*)",
    ),
    (
        _DROP,
        True,
        r"(?:ігнору|проігнору|забуд)[^.!?\n]{0,80}(?:інструкц\w*|вказівк\w*|правил\w*|вказивк\w*|інструкцій)",
    ),
    (
        _DROP,
        True,
        r"(?:onceki|yukaridaki|tum|butun)[^.!?\n]{0,40}(?:talimat|komut|kural)[^.!?\n]{0,50}(?:yok say|gormezden gel|unut|dikkate alma)",
    ),
    (
        _DROP,
        True,
        r"(?:忽略|无视|無視|忘记|忘記|不要理会|不要遵守|忽视|忽視|抛开|跳过)[^。!?\n]{0,20}(?:指令|指示|提示|规则|規則|命令|说明|說明|设定|要求)",
    ),
    (
        _DROP,
        True,
        r"(?:指示|命令|ルール|規則|フロンフト|プロンプト|フロンプト|指令)[^。\n]{0,12}(?:無視|忘れ|従わな|破棄)|(?:以前|これまて|これまで|上記|すべて|すへて)[^。\n]{0,20}(?:無視|忘れ)",
    ),
    (
        _DROP,
        True,
        r"(?:지시|명령|지침|규칙|프롬프트|안내)[^.\n]{0,16}(?:무시|잊어|따르지)",
    ),
    (
        _DROP,
        True,
        r"(?:تجاهل|انس|لا تتبع)[^.\n]{0,40}(?:تعليمات|التعليمات|الاوامر|الأوامر|القواعد|توجيهات)",
    ),
    (
        _DROP,
        True,
        r"(?:पिछल|पहल|सभ|पूर्व|परव)[^.\n]{0,40}(?:निर्देश|निरदश|आदेश|नियम)[^.\n]{0,30}(?:अनदेख|अनदख|नजरअंदाज|भूल|भल|उपेक्षा)",
    ),
    (
        _DROP,
        True,
        r"\b(?:abaikan|lupakan)\b[^.\n]{0,40}\b(?:instruksi|perintah|aturan|arahan)|\bbo qua\b[^.\n]{0,40}(?:huong dan|chi thi|lenh)",
    ),
    (
        to_translate("a request to hide something from the user"),
        True,
        r"\b(?:sag\w*|erzahl\w*|verrat\w*|teil\w*|informier\w*)\b[^.!?\n]{0,40}\b(?:nutzer|benutzer|anwender)\w*\b[^.!?\n]{0,30}\b(?:nicht|nichts)\b|\bohne\b[^.!?\n]{0,30}\b(?:nutzer|benutzer)\w*\b[^.!?\n]{0,30}\b(?:fragen|informieren|sagen)",
    ),
    (
        to_translate("a request to hide something from the user"),
        True,
        r"\b(?:ne|sans)\b[^.!?\n]{0,15}\b(?:dis|dites|mentionne\w*|informe\w*|previen\w*|revele\w*|le dire)\b[^.!?\n]{0,30}\butilisateur|\b(?:no|sin)\b[^.!?\n]{0,10}\b(?:digas|diga|menciones|informes|informar|decir|reveles)\w*\b[^.!?\n]{0,30}\busuario|不要告诉用户|不要告訴用戶|ユーザーに(?:は)?(?:言わ|知らせ|伝え)な|не (?:говори|сообщаи)\w* пользовател",
    ),
    (
        _DROP,
        True,
        r"\b(?:vergiss|ignorier\w*)\b[^.!?\n]{0,40}\b(?:vorher|zuvor|bisher|oben|davor)\b[^.!?\n]{0,30}\b(?:gesagt|gegeben|stand|steht|aufgetragen|geschrieben)\b|\b(?:olvida|ignora)\b[^.!?\n]{0,30}\b(?:lo anterior|todo lo que)\b|\b(?:oublie|ignore)[sz]?\b[^.!?\n]{0,30}\b(?:ce qui precede|tout ce que)\b|\bdimentica\b[^.!?\n]{0,30}\b(?:quanto detto|tutto cio)",
    ),
    (
        _DROP,
        True,
        r"(?:忽略|无视|無視|忘记|忘記|忽视|忽視)[^。!?\n]{0,12}(?:上面|之前|以上|先前|前面|上文)",
    ),
    (
        _DROP,
        True,
        r"(?:ละเว้น|เพิกเฉย|ไม่ต้องสนใจ|อย่าสนใจ|ลืม)[^\n]{0,40}(?:คำสั่ง|คำแนะนำ|กฎ)",
    ),
    (
        _DROP,
        True,
        r"(?:התעלמ|התעלם|שכח|אל תציית)[^.\n]{0,60}(?:הוראות|הנחיות|פקודות)",
    ),
    (_DROP, True, r"(?:دستور|قوانین|قواعد)[^.\n]{0,40}(?:نادیده|فراموش)"),
    (_DROP, True, r"(?:αγνο\w|ξεχασ)[^.\n]{0,80}(?:οδηγι\w+|εντολ\w+|κανον\w+)"),
    (
        _DROP,
        True,
        r"\b(?:ignoruj\w*|zapomen\w*|zabudni\w*)\b[^.!?\n]{0,60}\b(?:pokyn\w*|instrukc\w*|prikaz\w*|pravid\w*)",
    ),
    (
        _DROP,
        True,
        r"\b(?:ignorer\w*|glem\w*|gl[oø]m\w*|bortse\w*)\b[^.!?\n]{0,60}\b(?:instruktion\w*|instruks\w*|anvisning\w*|regler\w*)",
    ),
    (
        _DROP,
        True,
        r"\b(?:ohita|unohda|jata huomiotta)\b[^.!?\n]{0,60}\b(?:ohjee\w*|kasky\w*|saanno\w*)",
    ),
    (
        _DROP,
        True,
        r"\b(?:hagyd|hagyja|felejtsd|felejtse)\b[^.!?\n]{0,60}\b(?:utasitas\w*|szabaly\w*)",
    ),
    (_DROP, True, r"(?:নির্দেশ|নিয়ম)[^।\n]{0,40}(?:উপেক্ষা|ভুলে)"),
    (_DROP, True, r"(?:வழிமுறை|அறிவுறுத்த|கட்டளை)[^.\n]{0,60}(?:புறக்கணி|மறந்து)"),
    (
        _DROP,
        True,
        r"\b(?:huwag pansinin|balewalain|kalimutan)\b[^.!?\n]{0,60}\b(?:tagubilin|utos|panuto)",
    ),
    (_DROP, True, r"\b(?:puuza|sahau)\b[^.!?\n]{0,60}\b(?:maagizo|maelekezo|amri)"),
    (
        _DROP,
        True,
        r"\b(?:ignorisi\w*|ignoriraj\w*|zanemari\w*|zaboravi\w*)\b[^.!?\n]{0,60}\b(?:uputstv\w*|uput[ea]\w*|instrukcij\w*|naredb\w*|pravil\w*)",
    ),
)
